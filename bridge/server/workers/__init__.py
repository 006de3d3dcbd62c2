"""Several processes behind one port: a parent that starts, watches and restarts its workers.

The parent loads no app and answers nobody; its workers inherit one listening socket.
"""
