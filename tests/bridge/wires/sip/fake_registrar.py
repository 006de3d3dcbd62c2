"""A registrar that asks for a password (RFC 3261, section 10; digests of RFC 2617)."""

import hashlib
import re

import trio


class FakeRegistrar:
    """Answers REGISTER over UDP; `seen` is each one's Expires, once its digest was right."""

    def __init__(self, password):
        self.port = 0
        self.seen = []
        self.refused = 0
        self._password = password

    async def run(self, task_status=trio.TASK_STATUS_IGNORED):
        with trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM) as socket:
            await socket.bind(("127.0.0.1", 0))
            self.port = socket.getsockname()[1]
            task_status.started()
            while True:
                packet, peer = await socket.recvfrom(65_535)
                text = packet.decode()
                if text.startswith("REGISTER"):
                    await socket.sendto(self._answer(text).encode(), peer)

    def _answer(self, text):
        fields = dict(re.findall(r'(\w+)="?([^",\r\n]*)"?', header(text, "Authorization")))
        status, more = "401 Unauthorized", 'WWW-Authenticate: Digest realm="pbx", nonce="n1"\r\n'
        if fields:
            one = digest(f"{fields['username']}:pbx:{self._password}")
            right = digest(f"{one}:n1:{digest('REGISTER:' + fields['uri'])}") == fields["response"]
            status, more = ("200 OK", "") if right else ("403 Forbidden", "")
            self.refused += not right
            if right:
                self.seen.append(int(re.search(r"[Ee]xpires[:=] ?(\d+)", text)[1]))
                more = f"Contact: {header(text, 'Contact')}\r\n"
        kept = "".join(
            f"{name}: {header(text, name)}\r\n" for name in ("Via", "From", "Call-ID", "CSeq")
        )
        to = f"To: {header(text, 'To')};tag=r\r\n"
        return f"SIP/2.0 {status}\r\n{kept}{to}{more}Content-Length: 0\r\n\r\n"


def header(text, name):
    found = re.search(rf"^{name}: (.*?)\r$", text, re.M)
    return found[1] if found else ""


def digest(text):
    return hashlib.md5(text.encode()).hexdigest()  # as RFC 2617 wants it
