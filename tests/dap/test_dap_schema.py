#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Messages of the adapter are those of the protocol: all that the tests here hear are compared with its schema.

These show that a comparison takes place, and what it finds.
"""
import copy
import os
import sys
from unittest import SkipTest

if __name__ == "__main__":
    os.execvp("pytest-3", ["pytest-3", "--lines", *sys.argv])

import pytest
import dapschema
from dapclient import Adapter, scene

ANSWER = {"seq": 1, "type": "response", "request_seq": 1, "success": True, "command": "threads",
          "body": {"threads": [{"id": 1, "name": "one"}]}}


def need_schema():
    if dapschema.jsonschema is None:
        raise SkipTest("python3-jsonschema is not installed: no message was compared with the protocol's schema")


def answer(**changes):
    message = copy.deepcopy(ANSWER)
    message.update(changes)
    return message


def asked(command="threads"):
    conversation = dapschema.Conversation()
    conversation.from_editor({"seq": 1, "type": "request", "command": command})
    return conversation


def test_messages():
    """A session, each message of which is compared when it is read."""
    need_schema()
    with scene() as s, Adapter(s.socket) as a:
        a.start(pid=s.app.pid)
        a.pause()
        a.variables(a.scope("Wave"))
        a.call("gpuAgent/groups")
        a.finish()
        assert a.conversation.checked > 15 and not a.conversation.asked, vars(a.conversation)


@pytest.mark.parametrize("message", [
    answer(body={"threads": [{"id": 1}]}), answer(body={"threads": [{"id": "1", "name": "one"}]}), answer(body={}),
    answer(body={"threads": [{"id": 1, "name": "one", "nane": ""}]}), answer(request_seq=0), answer(request_seq=2), answer(seq=2),
    answer(command="scopes"), answer(success=False, body={"error": {"format": "x"}}), answer(success=False, body=None),
    {"seq": 1, "type": "event", "event": "stoped"}, {"seq": 1, "type": "event", "event": "stopped", "body": {"reason": "faults"}},
], ids=["no name", "type of a member", "no member", "unknown member", "answer to nobody", "answer to another", "gap", "other command",
        "error without id", "error without body", "unknown event", "unknown reason"])
def test_a_mistake_is_found(message):
    need_schema()
    asked().from_adapter(ANSWER)
    with pytest.raises(dapschema.Mismatch):
        asked().from_adapter(message)


def test_requests_of_our_own():
    conversation = asked("gpuAgent/waves")
    body = {"waves": [], "total": 0}
    conversation.from_adapter(answer(command="gpuAgent/waves", body=body))
    for wrong in ({**body, "more": 1}, {"waves": []}, {**body, "total": "0"}, {**body, "waves": [{}]}):
        with pytest.raises(AssertionError):
            asked("gpuAgent/waves").from_adapter(answer(command="gpuAgent/waves", body=wrong))
    with pytest.raises(dapschema.Mismatch):
        asked("gpuAgent/none").from_adapter(answer(command="gpuAgent/none"))
