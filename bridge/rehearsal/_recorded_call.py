"""Makes one call to an open server, records it, and measures it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import trio

from ..client import FRAME_S, Caller, Clear, Transcript, open_caller
from ._ignored_sounds import find_aside
from ._microphone import Microphone, Room
from ._observer import Observer
from ._recording import RATE_HZ, Recording, record
from ._recording_measurements import Fence, Notes, find_answer, find_cut, heard_of_answer
from ._result import Aside, Rehearsal, Said
from ._script import Line
from ._simulated_caller import Conversation, Watcher

TAIL_S = 0.3
"""Seconds of silence recorded after the call."""

Beside: TypeAlias = Callable[[Caller, Conversation], Awaitable[None]]
"""Something that the caller does while the script runs, such as pressing keys."""


async def make_call(
    url: str,
    script: Sequence[tuple[Line, bytes]],
    *,
    observer: Observer,
    watcher: Watcher,
    answer_s: float = 20.0,
    room: Callable[[Caller], Room] | None = None,
    beside: Beside | None = None,
) -> tuple[Rehearsal, Notes]:
    """Call a server, follow a script until the call is over, and measure what happened.

    Cancelling is safe: the caller hangs up, within a deadline of its own.

    Args:
        url: The server's address.
        script: The lines, each with its sound (PCM16 little-endian mono, 16 kHz).
        observer: A new observer; the server must serve ``observer.watched(app)``.
        watcher: Follows the call while it lasts.
        answer_s: Seconds that the agent has to answer the last line and to end the call.
        room: Makes the room of the caller's microphone; ``None`` for a quiet room.
        beside: What the caller does besides speaking, from the start of the call to its end;
            ``None`` for nothing.

    Returns:
        The measurements without checks, and the notes that a recording does not show.
    """
    microphone = Microphone()
    async with open_caller(url, microphone=microphone.next_frame) as caller:
        if room is not None:
            microphone.room = room(caller)
        conversation = Conversation(caller, microphone, watcher)
        start_s = caller.received[0].at_s - FRAME_S
        watcher.call_began(start_s, conversation)
        async with trio.open_nursery() as nursery:
            if beside is not None:
                nursery.start_soon(beside, caller, conversation)
            await conversation.run(script, answer_s)
            nursery.cancel_scope.cancel(reason="the call is over")
    return await measure_call(caller, conversation, observer, start_s)


async def measure_call(
    caller: Caller, conversation: Conversation, observer: Observer, start_s: float
) -> tuple[Rehearsal, Notes]:
    """Measure a call that is over.

    Args:
        caller: The client that made it.
        conversation: What the caller said and heard.
        observer: What the app did.
        start_s: When the call began, in seconds of trio's clock.
    """
    microphone = conversation.microphone
    make_recording = partial(
        record,
        start_s=start_s,
        end_s=conversation.ended_s + TAIL_S,
        spoke=microphone.voice,
        sent=None if microphone.room is None else microphone.pcm,
        spoke_at_s=microphone.start_s,
        heard=conversation.heard,
        states=conversation.ear.states,
        generated=observer.audio,
        fades=True,
    )
    # It resamples every second of the call, and the server of a rehearsal has the same event loop.
    recording = await trio.to_thread.run_sync(make_recording)
    notes = Notes(
        fences=[
            Fence(r.at_s - start_s, r.message.utterance)
            for r in caller.received
            # Speech that ends because the caller hangs up was not cut.
            if isinstance(r.message, Clear) and r.at_s <= conversation.left_s
        ],
        arrivals=caller.arrivals,
        answers=observer.answers,
        texts=observer.texts,
        history=observer.history(start_s),
        metrics=observer.metrics,
        decisions=observer.decisions(start_s),
        held=observer.held(start_s, conversation.left_s),
        generations=[(at_s - start_s, answer) for at_s, answer in observer.generations],
        transcripts=_transcripts(caller, start_s),
    )
    said = _said(conversation, recording)
    result = Rehearsal(
        recording=recording,
        said=said,
        cuts=tuple(find_cut(each, recording, notes) for each in said if each.line.interrupts),
        answers=tuple(
            find_answer(each, recording, notes) for each in said if not each.line.is_aside
        ),
        history=list(map(dict, notes.history)),
        ended=caller.reason or "the caller left",
        problems=tuple(conversation.problems),
        transcripts=tuple(notes.transcripts),
        answer_seconds={
            answer: len(heard_of_answer(recording, notes, utterance)) / RATE_HZ
            for utterance, answer in notes.answers.items()
        },
        asides=_asides(said, recording, notes),
        decisions=tuple(notes.decisions),
        held=tuple(notes.held),
    )
    return result, notes


def _asides(said: Sequence[Said], recording: Recording, notes: Notes) -> tuple[Aside, ...]:
    starts = [*(each.from_s for each in said), recording.duration_s]
    return tuple(
        find_aside(each, until_s, recording, notes)
        for each, until_s in zip(said, starts[1:], strict=True)
        if each.line.is_aside
    )


def _said(conversation: Conversation, recording: Recording) -> tuple[Said, ...]:
    said = []
    for spoken in conversation.spoken:
        from_s = spoken.from_s - recording.start_s
        found = recording.caller_sound(from_s, spoken.until_s - recording.start_s)
        if found is not None:
            said.append(Said(spoken.line, *found))
    return tuple(said)


def _transcripts(caller: Caller, start_s: float) -> tuple[tuple[float, str], ...]:
    return tuple(
        (received.at_s - start_s, received.message.text)
        for received in caller.received
        if isinstance(received.message, Transcript)
        and received.message.role == "user"
        and received.message.final
    )
