"""The command ``bargein phone``: a call from the terminal, over a port of this machine."""

import pytest

from bargein.phone import command

AGENT = """
from bargein import App
from bargein.events import AgentResponse

class Clerk:
    async def generate(self, message):
        for word in "I know a long story, about a fox, and a hen, and much more.".split():
            yield AgentResponse(content=word + " ")

async def answer(call):
    call.converse(Clerk())
    call.say("Hi.")

app = App(answer)
"""


@pytest.mark.proof
def test_a_script_is_played_to_the_agent(tmp_path, capsys):
    """The caller's lines are said in turn, or over the agent, and what was heard is printed."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "script.txt").write_text("Hello.\n! Stop.\n")
    assert command([str(tmp_path / "agent.py"), "--script", str(tmp_path / "script.txt")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["[+15550001 rings]", "agent: Hi.", "you: Hello."]
    assert said.count("you: Stop.") == 1
    assert said[-2:] == ["agent: and much more.", "[you hung up]"]


def test_what_is_missing_is_named(tmp_path, capsys):
    """An app or a script that is not there ends the command with a text."""
    assert command([str(tmp_path / "none.py")]) == 1
    assert "none.py" in capsys.readouterr().err
    (tmp_path / "agent.py").write_text(AGENT)
    assert command([str(tmp_path / "agent.py"), "--script", str(tmp_path / "none.txt")]) == 1
    assert "none.txt" in capsys.readouterr().err
