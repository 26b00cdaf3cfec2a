// SPDX-License-Identifier: MIT
// Processes that use a GPU, as the agent lists them.
import { Client, Process, UnreachableError } from "./client";
import { spelled } from "./spelled";

/** Those that can be debugged first. */
export async function processes(socket: string): Promise<Process[]> {
	const agent = await Client.connect(socket);
	try {
		const list = (await agent.processList()).processes;
		return [...list.filter((p) => p.debuggable), ...list.filter((p) => !p.debuggable)];
	} finally {
		await agent.close();
	}
}

export function count(n: number, noun: string): string {
	return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

export function vendorOf(p: Process): string {
	return p.vendor === "amd" ? "AMD" : p.vendor === "nvidia" ? "NVIDIA" : "no GPU";
}

export function whyNot(p: Process): string | undefined {
	return p.debuggable ? undefined : `Cannot be debugged: ${p.reason ?? "the agent does not say why"}`;
}

export function nameOf(p: Pick<Process, "pid" | "comm">): string {
	return `${p.pid} ${spelled(p.comm)}`;
}

/** Which process of a job it is. */
export function rankOf(p: Process): string | undefined {
	if (!p.rank)
		return undefined;
	return `rank ${p.rank.rank}${p.rank.world_size === undefined ? "" : ` of ${p.rank.world_size}`}`;
}

export function commandLineOf(p: Process): string | undefined {
	return p.command_line === undefined ? undefined : `${spelled(p.command_line)}${p.command_line_cut ? "…" : ""}`;
}

/** What tells processes apart, in one line. */
export function factsOf(p: Process): string[] {
	const rank = rankOf(p);
	return [
		...(rank === undefined ? [] : [rank]), vendorOf(p), ...(p.gpu_ids.length ? [count(p.gpu_ids.length, "device")] : []),
		...(p.queues ? [count(p.queues, "queue")] : []),
		...(p.ns_pid ? [`${p.ns_pid} in its container`] : []),
		...(p.container ? [spelled(p.container)] : []),
	];
}

/** What to say of a failure of the agent. */
export function failure(socket: string, error: unknown): string {
	const absent = error instanceof UnreachableError && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
	const text = error instanceof Error ? error.message : String(error);
	return absent ? `No GPU agent listens on ${socket}: start gpu-agentd.socket, gpu-agentd --user, or say in the setting ` +
		"gpuAgent.socket where it is." : `GPU agent: ${text}`;
}
