# SPDX-License-Identifier: MIT
"""Client of gpu-agentd; nothing but the standard library, Python 3.9 or newer.

    import gpu_agent

    with gpu_agent.Client() as agent:
        session = agent.session_attach(pid=4242)["session"]
        for group in agent.gpu_snapshot(session=session)["groups"]:
            print(group["waves"], group.get("kernel", {}).get("name"), group["pc"])

Errors of the agent are subclasses of AgentError, one for each code; a lost connection is a
ConnectionError, an answer that does not come a TimeoutError.  AsyncClient is the same for asyncio.
"""

from .connection import *  # noqa: F401,F403
from .protocol import *  # noqa: F401,F403
