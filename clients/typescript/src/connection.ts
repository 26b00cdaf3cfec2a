// SPDX-License-Identifier: MIT
// JSON-RPC on the agent's socket, by vscode-jsonrpc; the calls themselves are in protocol.ts.
import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import {
	createMessageConnection, Disposable, Message, MessageConnection, ParameterStructures, ResponseError,
	SocketMessageReader, SocketMessageWriter,
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
	/** After this time the call may succeed. */
	retry_ms?: number;
}

/** Whatever a connection or a call fails with; each class below is one reason. */
export class ClientError extends Error {}

/** An error reply of the agent. */
export class AgentError extends ClientError {
	constructor(readonly method: string, readonly code: number, text: string, readonly data?: ErrorData) {
		super(`${method}: ${text}${data?.hint ? ` (${data.hint})` : ""}`);
		this.name = "AgentError";
	}

	is(name: ErrorName): boolean {
		return this.data?.name === name;
	}
}

/** No answer within the time of the connection; it may be used on, and the agent goes on with what it does. */
export class TimeoutError extends ClientError {
	constructor(readonly method: string, readonly timeoutMs: number) {
		super(`${method}: no answer within ${timeoutMs} ms`);
		this.name = "TimeoutError";
	}
}

/** The connection has ended, whoever ended it. */
export class ConnectionLostError extends ClientError {
	constructor(readonly method: string, text: string) {
		super(`${method}: ${text}`);
		this.name = "ConnectionLostError";
	}
}

/** Nobody listens on the socket, or the caller may not connect. */
export class UnreachableError extends ClientError {
	/** Symbolic number of the system's error, such as ENOENT, ECONNREFUSED or EACCES. */
	readonly code?: string;
	/** What to do about it. */
	readonly hint: string;

	constructor(readonly socketPath: string, override readonly cause: NodeJS.ErrnoException) {
		const refused = cause.code === "EACCES" || cause.code === "EPERM";
		const hint = refused ?
			"an administrator can let you in with `adduser USER gpu-debug`; log in again afterwards" :
			"start the agent with `systemctl start gpu-agentd.socket`, or `gpu-agentd --user` for your own processes; " +
			"GPU_AGENT_SOCKET names another place";
		super(`${socketPath}: ${refused ? "you may not connect to the agent" : "no agent can be reached there"}: ` +
			`${cause.code ?? cause.message} (${hint})`);
		this.name = "UnreachableError";
		this.code = cause.code;
		this.hint = hint;
	}
}

const TIMEOUT_MS = 60000;
/** Timers take later ones for at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** More than an agent says when it refuses a connection. */
const REFUSAL_BYTES = 4096;
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

type Written = (error?: Error | null) => void;

/** An agent that refuses a connection says why before it closes: a request that comes too late must not hide that. */
class Socket extends net.Socket {
	override _write(chunk: unknown, encoding: BufferEncoding, written: Written): void {
		super._write(chunk, encoding, Socket.unlessClosed(written));
	}

	override _writev(chunks: Array<{ chunk: unknown; encoding: BufferEncoding }>, written: Written): void {
		super._writev!(chunks, Socket.unlessClosed(written));
	}

	/** Reading tells that the other side has closed, behind all it has said. */
	private static unlessClosed(written: Written): Written {
		return (error) => written((error as NodeJS.ErrnoException | undefined)?.code === "EPIPE" ? null : error);
	}
}

/** Whoever waits hears of the end of the connection by "close"; a failure here would be one that nobody can catch. */
class Writer extends SocketMessageWriter {
	override async write(message: Message): Promise<void> {
		await super.write(message).catch(() => undefined);
	}
}

interface Refusal {
	code: number;
	message: string;
	data?: ErrorData;
}

/** A refusal is a line for any kind of client, and the first thing that comes. */
function onRefusal(socket: net.Socket, tell: (refusal: Refusal) => void): void {
	let head = Buffer.alloc(0);
	const listen = (chunk: Buffer): void => {
		head = Buffer.concat([head, chunk]);
		const end = head.indexOf("\n");
		if (head[0] === 0x7b && end < 0 && head.length < REFUSAL_BYTES)
			return;
		socket.off("data", listen);
		try {
			tell((JSON.parse(head.toString("utf8", 0, Math.max(end, 0))) as { error: Refusal }).error);
		} catch {
			// An ordinary message: it begins with a header.
		}
	};
	socket.on("data", listen);
}

/** One connection.  Sessions that only it holds end with it. */
export class Connection {
	/** Fulfilled when the connection has ended, whoever ended it. */
	readonly closed: Promise<void>;
	private isClosed = false;
	private refusal?: Refusal;
	/** Of the calls under way, what ends them with the connection. */
	private readonly waiting = new Set<() => void>();

	/** @param timeoutMs  until an answer is given up with TimeoutError; 0: never */
	constructor(private readonly socket: net.Socket, private readonly rpc: MessageConnection, public timeoutMs = TIMEOUT_MS) {
		onRefusal(socket, (refusal) => this.refusal = refusal);
		this.closed = new Promise((resolve) => {
			socket.once("close", () => {
				this.isClosed = true;
				for (const lose of this.waiting)
					lose();
				rpc.dispose();
				resolve();
			});
		});
		rpc.onError(() => socket.destroy());
		rpc.listen();
	}

	/** @throws UnreachableError, with the `code` of the system's error, when nobody listens there. */
	static async connect<T extends Connection>(
		this: new (socket: net.Socket, rpc: MessageConnection, timeoutMs?: number) => T, socketPath = defaultSocket(),
		timeoutMs?: number,
	): Promise<T> {
		const socket = new Socket().connect(socketPath);
		await new Promise<void>((resolve, reject) => {
			socket.once("connect", resolve);
			socket.once("error", (error) => reject(new UnreachableError(socketPath, error)));
		});
		// An error later on is followed by "close", which `closed` tells.
		socket.on("error", () => undefined);
		const rpc = createMessageConnection(new SocketMessageReader(socket), new Writer(socket));
		return new this(socket, rpc, timeoutMs);
	}

	/** @throws AgentError for an error reply, also of a refused connection; TimeoutError; ConnectionLostError. */
	async call<M extends keyof Methods>(method: M, params: Params<M>): Promise<Result<M>> {
		if (this.isClosed)
			throw this.lost(method, "the connection is closed");
		checkLength(method, params);
		const { timeoutMs } = this;
		let lose = (): void => undefined;
		let timer: NodeJS.Timeout | undefined;
		const failed = new Promise<never>((_, reject) => {
			lose = () => reject(this.lost(method, "the agent closed the connection"));
			if (timeoutMs)
				timer = setTimeout(() => reject(new TimeoutError(method, timeoutMs)), Math.min(timeoutMs, TIMER_MAX_MS));
		});
		this.waiting.add(lose);
		try {
			return await Promise.race([this.rpc.sendRequest<Result<M>>(method, ParameterStructures.byName, params), failed]);
		} catch (error) {
			if (error instanceof ResponseError)
				throw new AgentError(method, error.code, error.message, error.data as ErrorData | undefined);
			throw error;
		} finally {
			clearTimeout(timer);
			this.waiting.delete(lose);
		}
	}

	private lost(method: string, text: string): Error {
		const refusal = this.refusal;
		return refusal ? new AgentError(method, refusal.code, refusal.message, refusal.data) : new ConnectionLostError(method, text);
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
