// SPDX-License-Identifier: MIT
/** Is a process hung?  usage: node watchdog.js PID [SECONDS]; exit status 10: hung, 3: it is gone, 9: no agent. */
import { setTimeout as sleep } from "node:timers/promises";

import { AgentError, Client, UnreachableError } from "./index";

async function hungQueues(pid: number, seconds: number): Promise<string[]> {
	// Nothing here may take longer than the watchdog's own patience.
	const agent = await Client.connect(undefined, 10_000);
	try {
		const { session } = await agent.sessionAttach({ pid });
		const before = await agent.gpuSnapshot({ session, max_stop_ms: 200 });
		await sleep(1000 * seconds);
		const after = await agent.gpuSnapshot({ session, max_stop_ms: 200 });
		const earlier = new Map(before.queues.map((queue) => [queue.queue_id, queue]));
		return after.queues
			.filter((queue) => {
				const last = earlier.get(queue.queue_id);
				const same = queue.waves_digest === last?.waves_digest || (queue.faulting_waves ?? 0) > 0;
				return last !== undefined && queue.read_index !== queue.write_index && queue.read_index === last.read_index && same;
			})
			.map((queue) => `queue ${queue.queue_id} is hung: waves: ${queue.waves ?? 0}, faulted: ${queue.faulting_waves ?? 0}`);
	} finally {
		await agent.close();
	}
}

async function main(): Promise<number> {
	const [pid, seconds] = process.argv.slice(2).map(Number);
	try {
		const hung = await hungQueues(pid, seconds ?? 1);
		hung.forEach((line) => console.log(line));
		return hung.length > 0 ? 10 : 0;
	} catch (error) {
		console.error(String(error));
		if (error instanceof UnreachableError) return 9;
		return error instanceof AgentError && error.is("no_such_process") ? 3 : 1;
	}
}

void main().then((status) => {
	process.exitCode = status;
});
