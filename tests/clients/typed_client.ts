// SPDX-License-Identifier: MIT
// The TypeScript client on a real daemon; that it compiles says as much as that it runs.
// usage: node typed_client.js SOCKET PID AGENTD_PID
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import {
	AgentError, Client, ClientError, Connection, ConnectionLostError, ErrorCode, ErrorName, GpuException, Methods,
	Notifications, PROTOCOL_VERSION, TimeoutError, UnreachableError, addThreads, queuePlaces,
} from "./index";

const [path, pidText, agentdText] = process.argv.slice(2);
const pid = Number(pidText);
setTimeout(() => {
	console.error("typed_client: not done in time");
	process.exit(1);
}, 60000).unref();

async function refused(promise: Promise<unknown>, name: ErrorName): Promise<AgentError> {
	const error = await promise.then(() => assert.fail(`${name} expected`), (e: unknown) => e);
	assert.ok(error instanceof AgentError, String(error));
	assert.ok(error.is(name), String(error));
	assert.equal(error.code, ErrorCode[name]);
	return error;
}

function next<N extends keyof Notifications>(agent: Connection, method: N): Promise<Notifications[N]> {
	return new Promise((resolve) => {
		const listening = agent.on(method, (params) => {
			listening.dispose();
			resolve(params);
		});
	});
}

/** What must not compile. */
export function mistakes(agent: Client): void {
	// @ts-expect-error no such method
	void agent.call("no.such_method", {});
	// @ts-expect-error pid is missing
	void agent.sessionAttach({});
	// @ts-expect-error pid is a number
	void agent.sessionAttach({ pid: "1" });
	// @ts-expect-error no such parameter
	void agent.sessionAttach({ pid: 1, pit: 2 });
	// @ts-expect-error an enum has no such value
	void agent.watchpointSet({ session: "", address: "0x0", size: 4, mode: "write" });
	// @ts-expect-error no such notification
	agent.on("no.such", () => undefined);
	// @ts-expect-error a method without parameters
	void agent.call("agent.status", { pid: 1 });
}

async function calls(agent: Client): Promise<void> {
	const hello = await agent.agentHello({ client: "typed" });
	assert.equal(hello.protocol, PROTOCOL_VERSION);
	assert.equal((await agent.call("agent.hello", {})).uid, hello.uid);
	assert.ok(await agent.rpcDiscover());
	const { processes } = await agent.processList();
	assert.equal(processes.find((p) => p.pid === pid)?.queues, 4);
	assert.ok((await agent.processList({ mine: true })).processes.every((p) => p.uid === process.getuid!()));
	const { session, vendor } = await agent.sessionAttach({ pid, control: true });
	assert.equal(vendor, "amd");
	const snapshot = await agent.gpuSnapshot({ session, waves: true });
	assert.ok(snapshot.complete && snapshot.waves && snapshot.queues.length === 4);

	const resumed = next(agent, "gpu.resumed");
	assert.equal((await agent.gpuSuspend({ session, lease_ms: 100 })).suspended, 4);
	assert.equal((await resumed).reason, "lease_expired");
	const wanted = [GpuException.wave_trap, GpuException.queue_new];
	const got = await agent.exceptionSubscribe({ session, exceptions: wanted });
	assert.ok(got.exceptions.every((e) => wanted.includes(e as typeof wanted[number])));

	const error = await refused(agent.sessionAttach({ pid: 4194304 }), "no_such_process");
	assert.ok(error.data?.hint && error.message.includes(error.data.hint) && error.method === "session.attach");
	await refused(agent.sessionAttach({ pid: 0 }), "invalid_params");
	await refused(agent.call("no.such" as keyof Methods, {}), "method_not_found");
	await refused(agent.agentHello({ client: "x".repeat(1 << 20) }), "too_large");
	await refused(agent.agentHello({ client: "x".repeat((1 << 20) - 200) }), "invalid_params");
	await assert.rejects(agent.sessionAttach({ pid: 1n as unknown as number }), TypeError);
	const many = await Promise.all(Array.from({ length: 50 }, () => agent.gpuQueues({ session })));
	assert.ok(many.every(({ queues }) => queues.length === 4));
	assert.deepEqual(await agent.sessionDetach({ session }), { ended: true });
}

/** The same document as of gpu-agentctl snapshot --host. */
async function threads(agent: Client): Promise<void> {
	const { session } = await agent.sessionAttach({ pid });
	const snapshot = await agent.gpuSnapshot({ session });
	await agent.sessionDetach({ session });
	const queues = queuePlaces(snapshot.queues);
	assert.deepEqual(queues.map((q) => q.queue_id), snapshot.queues.map((q) => q.queue_id));
	assert.deepEqual(queuePlaces([{ ...snapshot.queues[0], type: "sdma" }, { ...snapshot.queues[0], ring_base: undefined }]), []);
	const host = await agent.hostStacks({ pid, queues });
	const gpu = { ...snapshot };
	addThreads(snapshot, host);
	assert.ok(snapshot.host === host && host.groups.length > 0 && host.stopped_us === 0);
	assert.deepEqual(snapshot.missing, [...gpu.missing, ...host.missing.map((what) => `host: ${what}`)]);
	assert.equal(snapshot.complete, gpu.complete && host.complete);
	addThreads(gpu, { ...host, complete: false, missing: ["frames"] });
	assert.ok(!gpu.complete && gpu.missing.includes("host: frames"));
}

/** Who asks when the agent dies is told. */
async function unanswered(): Promise<void> {
	const silent = `${path}.silent`;
	const server = net.createServer((socket) => socket.once("data", () => socket.destroy())).listen(silent);
	await once(server, "listening");
	const agent = await Client.connect(silent);
	await assert.rejects(agent.agentHello(), /closed the connection/);
	await agent.closed;
	server.close();
}

async function late(): Promise<void> {
	const silent = `${path}.late`;
	const server = net.createServer((socket) => socket.resume()).listen(silent);
	await once(server, "listening");
	const agent = await Client.connect(silent, 50);
	await assert.rejects(agent.agentHello(), (e: unknown) => e instanceof TimeoutError && e.method === "agent.hello");
	agent.timeoutMs = 0;
	const waiting = assert.rejects(agent.agentHello(), /closed the connection/);
	await agent.close();
	await waiting;
	server.close();
}

/** Also those that ask before they have heard. */
async function full(agent: Client): Promise<void> {
	const { limits } = await agent.agentHello();
	const others: Client[] = [];
	while (others.length < limits.connections - 1) {
		others.push(await Client.connect(path));
		await others[others.length - 1].agentHello();
	}
	for (let i = 0; i < 20; i++) {
		const one = await Client.connect(path);
		if (i % 2)
			await one.closed;
		const error = await refused(one.agentHello(), "limit");
		assert.match(error.message, /too many connections/);
		await one.closed;
		await refused(one.agentHello(), "limit");
	}
	for (const one of others)
		await one.close();
	while ((await agent.agentStatus()).connections > 1)
		await new Promise((resolve) => setTimeout(resolve, 10));
}

async function lost(): Promise<void> {
	const agent = await Client.connect(path);
	await agent.close();
	await agent.closed;
	await assert.rejects(agent.agentHello(), ConnectionLostError);
	await assert.rejects(agent.agentHello(), /connection is closed/);

	const other = await Client.connect(path);
	await other.agentHello();
	process.kill(Number(agentdText), "SIGTERM");
	await other.closed;
	await assert.rejects(other.agentHello(), /connection is closed/);
	await assert.rejects(Client.connect("/nonexistent/socket"), { code: "ENOENT" });
	for (const [place, code] of [["/nonexistent/socket", "ENOENT"], ["/dev/null", "ECONNREFUSED"]]) {
		const error = await Client.connect(place).then(() => assert.fail(`connected to ${place}`), (e: unknown) => e);
		assert.ok(error instanceof UnreachableError && error instanceof ClientError, String(error));
		assert.deepEqual([error.code, error.socketPath, error.cause.code], [code, place, code]);
		assert.ok(error.message.includes(place) && error.message.includes(error.hint) && error.hint.includes("gpu-agentd.socket"));
	}
}

async function main(): Promise<void> {
	const agent = await Client.connect(path);
	await calls(agent);
	await threads(agent);
	await full(agent);
	await agent.close();
	await unanswered();
	await late();
	await lost();
	console.log("done");
}

main().catch((error: unknown) => {
	console.error(error);
	process.exit(1);
});
