"""What is done once a publication is over, and when: behind the clean-up of what it has cut."""

import sys
import threading
from functools import partial
from typing import Literal

import pytest
import trio
import trio.testing

from bargein.routes import Event, open_router


class Go(Event):
    type: Literal["am.go"] = "am.go"


class Stop(Event):
    type: Literal["am.stop"] = "am.stop"


class Other(Event):
    type: Literal["am.other"] = "am.other"


def is_stop(message):
    return type(message.event) is Stop


async def sleep(message):
    await trio.sleep_forever()
    yield


class Scene:
    """A router with a node that talks until it is cut, and a list of what happens."""

    def __init__(self, router, clean_up_s=0.0):
        self.router, self.happened = router, []
        self._clean_up_s = clean_up_s
        router.listen(
            run_cut=lambda run: self.happened.append("told of the cut"),
            run_ended=lambda run: self.happened.append("run over"),
        )
        router.on(Go).interrupt_on(Stop).stream(self.talk).broadcast()

    async def talk(self, message):
        try:
            await trio.sleep_forever()
            yield
        finally:
            self.happened.append("node cleans up")
            with trio.CancelScope(shield=True):
                await trio.sleep(self._clean_up_s)

    async def start(self):
        self.router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()

    def follow_stop(self):
        def seen(message):
            self.happened.append("sink")
            self.router.call_after(lambda: self.happened.append("deferred work"))

        self.router.add_sink(seen, Stop)


async def test_what_is_left_to_do_comes_behind_the_clean_up():
    """A node that is cut cleans up before states are worked out, and they before its run ends."""
    async with open_router() as router:
        scene = Scene(router)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        assert scene.happened == ["told of the cut", "sink"]
        await trio.testing.wait_all_tasks_blocked()
    assert scene.happened[2:] == ["node cleans up", "deferred work", "run over"]


async def test_a_cut_that_may_be_told_later_is_told_first(autojump_clock):
    """Then the sinks that may wait get the message, and then comes what they leave to be done."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        assert scene.happened == []
        await trio.testing.wait_all_tasks_blocked()
    told = ["told of the cut", "sink", "deferred work"]
    assert scene.happened == ["node cleans up", *told, "run over"]


async def test_what_may_be_reported_later_changes_between_two_cuts():
    """Each cut is reported as ``cut_may_wait`` says when it is made."""
    async with open_router() as router:
        scene = Scene(router)
        scene.follow_stop()
        for may_wait, reported in ((True, []), (False, ["told of the cut"]), (True, [])):
            router.listen(cut_may_wait=lambda message, may_wait=may_wait: may_wait)
            await scene.start()
            scene.happened.clear()
            router.publish(Stop())
            assert scene.happened[:1] == reported
            await trio.testing.wait_all_tasks_blocked()


async def test_what_is_not_said_to_wait_comes_at_once():
    """Without ``cut_may_wait`` a sink has its message when publish() returns."""
    async with open_router() as router:
        scene = Scene(router)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        assert scene.happened == ["told of the cut", "sink"]


async def test_a_chain_is_triggered_at_once():
    """A sync stage runs within publish(), also when the same event cuts a run."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        router.on(Stop).map(lambda message: scene.happened.append("stage"))
        await scene.start()
        router.publish(Stop())
        assert scene.happened == ["told of the cut", "stage"]


async def test_what_is_published_next_finds_all_done():
    """Nothing that is published later overtakes what a cut has left to be done."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        scene.follow_stop()
        router.add_sink(lambda message: scene.happened.append("other"), Other)
        await scene.start()
        router.publish(Stop())
        router.publish(Other())
        assert scene.happened == ["told of the cut", "sink", "deferred work", "other"]
        await trio.testing.wait_all_tasks_blocked()
        assert scene.happened[4:] == ["node cleans up", "run over"]


async def test_whoever_looks_finds_all_done():
    """catch_up() does what waits, once; report_cuts() tells of the cuts alone."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        router.report_cuts()
        assert scene.happened == ["told of the cut"]
        router.catch_up()
        router.catch_up()
        assert scene.happened == ["told of the cut", "sink", "deferred work"]


async def test_a_clean_up_that_takes_long_delays_nothing_else(autojump_clock):
    """What is left to do is done in the next scheduler step, while the node still cleans up."""
    async with open_router() as router:
        scene = Scene(router, clean_up_s=0.5)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == 0.0
        assert scene.happened == ["told of the cut", "sink", "node cleans up", "deferred work"]


async def in_a_shield(ready):
    with trio.CancelScope(shield=True):
        ready.set()
        await trio.sleep(0.5)


async def behind_a_shield(ready):
    await in_a_shield(ready)
    yield


async def behind_a_shield_at_its_second_wait(ready):
    await trio.lowlevel.checkpoint()
    await in_a_shield(ready)
    yield


async def in_a_thread(ready):
    hold = threading.Event()
    ready.set()
    trio.lowlevel.spawn_system_task(set_at, 0.5, hold)
    await trio.to_thread.run_sync(hold.wait)
    yield


async def set_at(time_s, event):
    await trio.sleep_until(time_s)
    event.set()


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("wait", [behind_a_shield, behind_a_shield_at_its_second_wait, in_a_thread])
async def test_a_node_that_no_cut_can_wake_delays_nothing_else(wait, buffered, autojump_clock):
    """What is left to do is done in the same instant, though the run's task goes on sleeping."""
    ready = trio.Event()
    async with open_router() as router:
        scene = Scene(router)
        scene.follow_stop()
        route = router.on(Other).interrupt_on(Stop).stream(lambda message: wait(ready))
        (route.buffer(1) if buffered else route).broadcast()
        router.publish(Other())
        await ready.wait()
        await trio.lowlevel.checkpoint()
        router.publish(Stop())
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        assert trio.current_time() == 0.0
        assert scene.happened == ["told of the cut", "sink", "deferred work"]
        await trio.sleep(1)


async def test_a_node_that_cuts_itself_delays_nothing_else(autojump_clock):
    """It publishes what cuts it and goes on behind a shield: nothing deferred waits for it."""
    async with open_router() as router:
        scene = Scene(router)
        scene.follow_stop()

        async def stops_itself(message):
            router.publish(Stop())
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)
            yield

        router.on(Other).interrupt_on(Stop).stream(stops_itself).broadcast()
        router.publish(Other())
        await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == 0.0
        assert scene.happened == ["told of the cut", "sink", "deferred work"]


async def test_a_run_that_has_ended_is_cut_and_forgotten_at_once(autojump_clock):
    """While its output is on its way it can be cut, by an event or not, and is told of at once."""
    handled = []

    async def sink(message):
        if isinstance(message.event, Other):
            await trio.sleep(5)

    for cut in ("by an event", "by cut_all()"):
        async with open_router() as router:
            router.add_sink(sink)
            told = []

            def tell(run, told=told, router=router):
                told.append(run.outcome)
                router.call_after(partial(told.append, "deferred work"))

            router.listen(run_cut=tell)
            route = router.on(Go).interrupt_on(Stop, partial(handled.append, cut))
            route = route.stream(two_others).broadcast()
            router.publish(Go())
            await trio.sleep(1)
            assert [run.outcome for run in router.runtime(route).runs] == ["completed"]
            if cut == "by an event":
                router.publish(Stop())
            else:
                router.cut_all("for a test")
            assert told == ["completed", "deferred work"]
            await trio.testing.wait_all_tasks_blocked()
            assert router.runtime(route).runs == ()
    assert handled == ["by an event", "by cut_all()"]


async def two_others(message):
    yield Other()
    yield Other()


async def test_one_can_see_where_the_task_of_a_run_waits():
    """The frames of a node are among those that trio gives of its task, cut or not."""
    tasks, heard = [], trio.Event()

    async def talk(message):
        tasks.append(trio.lowlevel.current_task())
        try:
            await trio.sleep_forever()
            yield
        finally:
            with trio.CancelScope(shield=True):
                await say_goodbye()

    async def say_goodbye():
        await heard.wait()

    def names():
        return [frame.f_code.co_name for frame, _ in tasks[0].iter_await_frames()]

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(talk).broadcast()
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        assert "sleep_forever" in names()
        router.publish(Stop())
        await trio.testing.wait_all_tasks_blocked()
        assert "say_goodbye" in names()
        heard.set()


async def test_a_run_that_does_not_unwind_is_still_given_up(autojump_clock):
    """Its place is free a second after the cut, counted from the cut."""
    async with open_router() as router:
        scene = Scene(router, clean_up_s=5.0)
        await scene.start()
        router.publish(Stop())
        await trio.sleep(0.99)
        assert "run over" not in scene.happened
        await trio.sleep(0.02)
        assert scene.happened[-1] == "run over"


async def test_nothing_is_left_undone_when_the_router_closes():
    """What waits when the block is left is done before its runs end."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
    assert scene.happened[:3] == ["told of the cut", "sink", "deferred work"]
    assert scene.happened.count("deferred work") == 1


async def test_what_follows_from_several_cuts_is_called_once_behind_all():
    """What the listeners for two cuts leave to be done is done once, behind the sinks."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        first, second = Scene(router), Scene(router)
        happened = second.happened

        def told(run):
            happened.append("told of the cut")
            router.call_after(deferred_work)

        def deferred_work():
            happened.append("deferred work")

        router.listen(run_cut=told)
        router.add_sink(lambda message: happened.append("sink"), Stop)
        await first.start()
        router.publish(Stop())
        router.catch_up()
        assert happened == ["told of the cut", "told of the cut", "sink", "deferred work"]
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        happened.clear()
        router.publish(Stop())
        router.report_cuts()
        assert happened == ["told of the cut", "told of the cut"]
        router.catch_up()
        assert happened[2:] == ["sink", "deferred work"]


async def test_cuts_are_told_in_their_order_though_the_listener_looks():
    """A listener that looks while it is told of a cut is not told of the next one in between."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        first, second = Scene(router), Scene(router)
        told = []

        def listener(run):
            router.report_cuts()
            told.append(run.id)

        router.listen(run_cut=listener)
        await first.start()
        router.publish(Stop())
        router.catch_up()
        assert told == [1, 2]
        assert second.happened == []


async def test_a_sink_that_may_wait_may_cut_as_well():
    """What it cuts is told as any cut, before anything else is published."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        router.on(Go).interrupt_on(Other).stream(scene.talk).broadcast()
        router.add_sink(lambda message: router.publish(Other()), Stop)
        await scene.start()
        router.publish(Stop())
        router.catch_up()
        assert scene.happened == ["told of the cut", "told of the cut"]
        await trio.testing.wait_all_tasks_blocked()
        assert scene.happened.count("run over") == 2


async def test_a_loop_within_a_barge_in_loses_none_of_its_deferred_work():
    """A condition whose own event loops fails alone; the sinks get the message of the cut."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        failed = []
        router.listen(failed=lambda run, route, stage, error: failed.append(type(error).__name__))
        router.on(Other).map(lambda message: router.publish(Other()) and None)
        condition = lambda message: router.publish(Other()) is not None  # noqa: E731
        router.on(Go).interrupt_on(Stop, condition=condition).stream(scene.talk).broadcast()
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        router.publish(Go())
        assert scene.happened == ["told of the cut", "told of the cut", "sink", "deferred work"]
        assert "PublishLoopError" in failed


async def test_a_loop_that_follows_from_a_cut_loses_none_of_its_deferred_work():
    """What the listener for cuts publishes may loop; the sinks still get the message of the cut."""
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        scene = Scene(router)
        router.listen(run_cut=lambda run: router.publish(Other()))
        router.on(Other).map(lambda message: router.publish(Other()) and None)
        scene.follow_stop()
        await scene.start()
        router.publish(Stop())
        router.publish(Go())
        assert scene.happened == ["sink", "deferred work"]


async def test_a_cut_is_counted_and_explained_for_whoever_looks():
    """Right behind publish() a chain knows of it, also where nobody listens to cuts."""
    async with open_router() as router:
        route = router.on(Go).interrupt_on(Stop).stream(sleep).broadcast()
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        router.publish(Stop())
        assert router.runtime(route).statistics.cut == 1
        assert [one.verdict for one in router.runtime(route).decisions] == ["matched", "cut"]


async def test_who_has_cuts_explained_hears_of_one_behind_the_clean_up():
    """It waits neither for the run to end, nor for anything else to be published."""
    happened = []

    async def talk(message):
        try:
            await trio.sleep_forever()
            yield
        finally:
            happened.append("node cleans up")
            with trio.CancelScope(shield=True):
                await cleaned_up.wait()

    cleaned_up = trio.Event()
    async with open_router() as router:
        router.listen(cut_may_wait=is_stop)
        router.listen(decided=lambda route, message, verdict, why, run: happened.append(verdict))
        router.on(Go).interrupt_on(Stop).stream(talk).broadcast()
        router.publish(Go())
        await trio.testing.wait_all_tasks_blocked()
        router.publish(Stop())
        await trio.testing.wait_all_tasks_blocked()
        assert happened == ["matched", "node cleans up", "cut"]
        cleaned_up.set()


async def test_the_first_interrupt_of_a_conversation_is_as_short_as_the_next():
    """What a cut needs is prepared when its run is triggered, so no node waits for that."""
    called = []

    def note(frame, event, arg):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("bargein.routes."):
            called[-1].append(frame.f_code.co_name)

    async with open_router() as router:
        router.on(Go).interrupt_on(Stop).stream(sleep).broadcast()
        for _ in range(2):
            router.publish(Go())
            await trio.testing.wait_all_tasks_blocked()
            called.append([])
            sys.setprofile(note)
            try:
                router.publish(Stop())
            finally:
                sys.setprofile(None)
            await trio.testing.wait_all_tasks_blocked()
    assert called[0] == called[1]
    assert "publish" in called[0]
