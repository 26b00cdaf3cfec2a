// SPDX-License-Identifier: MIT
// JSON-RPC on the agent's socket, by vscode-jsonrpc; the calls themselves are in protocol.ts.
import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import {
	createMessageConnection, Disposable, MessageConnection, ParameterStructures, ResponseError, SocketMessageReader,
	SocketMessageWriter,
} from "vscode-jsonrpc/node";
import type { ErrorCode, ErrorName, Methods, Notifications } from "./protocol";

export { Disposable } from "vscode-jsonrpc/node";

export type Params<M extends keyof Methods> = Methods[M]["params"];
export type Result<M extends keyof Methods> = Methods[M]["result"];

/** `data` of an error reply. */
export interface ErrorData {
	name: ErrorName;
	/** Symbolic number of the system call's error. */
	errno?: string;
	/** What was being done. */
	op?: string;
	/** What to do about it. */
	hint?: string;
	/** Status of a vendor's library. */
	vendor?: number;
	/** Whether the process runs again. */
	resumed?: boolean;
}

/** An error reply of the agent. */
export class AgentError extends Error {
	constructor(readonly method: string, readonly code: number, text: string, readonly data?: ErrorData) {
		super(`${method}: ${text}${data?.hint ? ` (${data.hint})` : ""}`);
		this.name = "AgentError";
	}

	is(name: ErrorName): boolean {
		return this.data?.name === name;
	}
}

/** What the agent takes (limits of agent.hello). */
const REQUEST_BYTES = 1 << 20;
// protocol.ts takes its value from here: only its types can be had.
const TOO_LARGE: typeof ErrorCode.too_large = -32009;

/**
 * The answer to a request that is too long names none, so nobody would hear of it.
 * @throws also for what JSON has no form of
 */
function checkLength(method: string, params: object): void {
	const longest = JSON.stringify({ jsonrpc: "2.0", id: Number.MAX_SAFE_INTEGER, method, params });
	if (Buffer.byteLength(longest) > REQUEST_BYTES)
		throw new AgentError(method, TOO_LARGE, "the request is larger than 1 MiB", { name: "too_large" });
}

/** $GPU_AGENT_SOCKET; or else the agent of the system, or of this user, as gpu-agentctl chooses. */
export function defaultSocket(): string {
	const system = "/run/gpu-agent/agentd.sock";
	const directory = process.env.XDG_RUNTIME_DIR;
	const own = directory ? path.join(directory, "gpu-agent/agentd.sock") : undefined;
	if (process.env.GPU_AGENT_SOCKET)
		return process.env.GPU_AGENT_SOCKET;
	return own && !fs.existsSync(system) && fs.existsSync(own) ? own : system;
}

/** One connection.  Sessions that only it holds end with it. */
export class Connection {
	/** Fulfilled when the connection has ended, whoever ended it. */
	readonly closed: Promise<void>;
	private isClosed = false;

	constructor(private readonly socket: net.Socket, private readonly rpc: MessageConnection) {
		this.closed = new Promise((resolve) => {
			socket.once("close", () => {
				this.isClosed = true;
				rpc.dispose();
				resolve();
			});
		});
		rpc.onError(() => socket.destroy());
		rpc.listen();
	}

	/** @throws Error of the system, with its `code`, when nobody listens there. */
	static async connect<T extends Connection>(
		this: new (socket: net.Socket, rpc: MessageConnection) => T, socketPath = defaultSocket(),
	): Promise<T> {
		const socket = net.connect(socketPath);
		await new Promise<void>((resolve, reject) => {
			socket.once("connect", resolve);
			socket.once("error", reject);
		});
		// An error later on is followed by "close", which `closed` tells.
		socket.on("error", () => undefined);
		const rpc = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
		return new this(socket, rpc);
	}

	/** @throws AgentError for an error reply, Error when the connection is lost. */
	async call<M extends keyof Methods>(method: M, params: Params<M>): Promise<Result<M>> {
		if (this.isClosed)
			throw new Error(`${method}: the connection is closed`);
		checkLength(method, params);
		try {
			return await this.rpc.sendRequest<Result<M>>(method, ParameterStructures.byName, params);
		} catch (error) {
			// Disposing rejects what is under way.
			if (this.isClosed)
				throw new Error(`${method}: the agent closed the connection`);
			if (error instanceof ResponseError)
				throw new AgentError(method, error.code, error.message, error.data as ErrorData | undefined);
			throw error;
		}
	}

	/** Listen to a notification. */
	on<N extends keyof Notifications>(method: N, listener: (params: Notifications[N]) => void): Disposable {
		return this.rpc.onNotification(method, listener);
	}

	/** Ends the connection; calls under way fail. */
	async close(): Promise<void> {
		this.socket.destroy();
		await this.closed;
	}
}
