# SPDX-License-Identifier: MIT
"""Client of gpu-agentd; nothing but the standard library, Python 3.9 or newer.

    import gpu_agent

    with gpu_agent.Client() as agent:
        session = agent.session_attach(pid=4242)["session"]
        for group in agent.gpu_snapshot(session=session)["groups"]:
            print(group["waves"], gpu_agent.kernel_name(group) or "?", group["pc"])

process_list() names the processes of every user, process_list(mine=True) those of the caller's user only.
Errors of the agent are subclasses of AgentError, one for each code.  An agent that cannot be reached is the
OSError of the system, such as FileNotFoundError, with what to do in its text.  A lost connection is a
ConnectionError, an answer that does not come a TimeoutError.  AsyncClient is the same for asyncio.
A core of a process goes into a file of the caller's:

    with gpu_agent.Client() as agent, open("core", "xb") as file:
        session = agent.session_attach(pid=4242, control=True)["session"]
        agent.core_begin(session=session)
        gpu_agent.write_core(agent.core_write(session=session)[1], file)

job_report() looks at all processes of a job, and writes a page of HTML:

    found = gpu_agent.job_report("hang.html", job="node")
"""

from .connection import *  # noqa: F401,F403
from .core import *  # noqa: F401,F403
from .groups import *  # noqa: F401,F403
from .host import *  # noqa: F401,F403
from .job import *  # noqa: F401,F403
from .protocol import *  # noqa: F401,F403
