// SPDX-License-Identifier: MIT
// Debug sessions of ours, and what each has told of its groups, waves and lanes.
import * as vscode from "vscode";
import { Focus, Groups, Lanes, request, WaveName, Waves } from "./requests";

export const TYPE = "gpu-agent";

interface Message {
	type: string;
	event?: string;
	command?: string;
	arguments?: { frameId?: number };
	body?: { threadId?: number };
	success?: boolean;
}

/** What was told stays true until the adapter says that something else is shown. */
export class Session {
	/** The pid of its process; undefined for a core file. */
	readonly pid?: number;
	readonly coreFile?: string;
	private readonly known = new Map<string, Promise<Groups>>();
	private readonly pages = new Map<string, Promise<Waves>>();
	private readonly lanes = new Map<string, Promise<Lanes>>();
	/** Looks at waves and lanes under way: one at what runs is told to the editor as a change. */
	private looking = 0;
	/** The frame whose scopes the editor has asked for last, which it does only while somebody sees variables. */
	private frame?: number;
	/** The thread to which the editor was taken last: after a change it asks for the stacks of all. */
	private thread?: number;
	private still = false;

	constructor(readonly debug: vscode.DebugSession) {
		const { pid, processId, coreFile } = debug.configuration;
		this.coreFile = typeof coreFile === "string" ? coreFile : undefined;
		this.pid = this.coreFile ? undefined : Number(pid ?? processId);
	}

	get id(): string {
		return this.debug.id;
	}

	/** The view shows them by itself, whoever is there. */
	groups(): Promise<Groups> {
		return kept(this.known, "", () => request(this.debug, "gpuAgent/groups", { automatic: true }));
	}

	wavesOf(threadId: number, start: number, count: number, automatic: boolean): Promise<Waves> {
		return kept(this.pages, `${threadId} ${start} ${count}`, () =>
			this.look(() => request(this.debug, "gpuAgent/waves", { threadId, start, count, automatic })));
	}

	lanesOf(threadId: number, wave: WaveName, automatic: boolean): Promise<Lanes> {
		return kept(this.lanes, `${threadId} ${JSON.stringify(wave)}`, () =>
			this.look(() => request(this.debug, "gpuAgent/lanes", { threadId, wave, automatic })));
	}

	/** Something stands still: the editor shows that, and nothing moves meanwhile. */
	get isStill(): boolean {
		return this.still;
	}

	/**
	 * Of the wave that the editor shows, or that was shown last.
	 * @param wanted  columns of expressions, which are of the frame that the editor shows
	 */
	async shownLanes(wanted: { columns?: string[]; variables?: boolean }, automatic: boolean): Promise<Lanes> {
		const { frame, thread } = this;
		const ask = (of: { frameId?: number; threadId?: number }): Promise<Lanes> =>
			request(this.debug, "gpuAgent/lanes", { ...wanted, ...of, automatic });
		const ofThread = (): Promise<Lanes> => ask(thread === undefined ? {} : { threadId: thread });
		const answer = await (frame === undefined ? ofThread() : ask({ frameId: frame }).catch((error: unknown) => {
			// The frame is one of before, or of a thread on a processor.
			if (!(error instanceof Error && /out of date|runs on a processor/.test(error.message)))
				throw error;
			if (this.frame === frame)
				this.frame = undefined;
			return ofThread();
		}));
		// The editor may have been taken elsewhere meanwhile.
		if (this.thread === thread)
			this.thread = answer.threadId;
		return answer;
	}

	/** @returns whether the editor shows another frame than before */
	asks(message: Message): boolean {
		const frame = message.command === "scopes" ? message.arguments?.frameId : undefined;
		if (frame === undefined || frame === this.frame)
			return false;
		this.frame = frame;
		return true;
	}

	/** @returns whether the editor goes there: it cannot go to what runs */
	async show(focus: Focus): Promise<boolean> {
		this.frame = undefined;
		this.thread = focus.threadId;
		return (await request(this.debug, "gpuAgent/focus", { ...focus, reveal: true })).revealed;
	}

	/** @returns whether anything that was told is not true any more */
	hears(message: Message): boolean {
		// Who asks for it is told by the answer alone.
		if (message.type === "response" && message.command === "continue" && message.success) {
			this.still = false;
			this.forget();
			return true;
		}
		if (message.type !== "event" || !["stopped", "continued", "invalidated"].includes(message.event ?? ""))
			return false;
		if (message.event === "stopped") {
			this.frame = undefined;
			this.thread = message.body?.threadId;
		}
		this.still = message.event === "stopped" || (message.event === "invalidated" && this.still);
		// What a look at waves or lanes has changed is not told again because of it.
		if (message.event === "invalidated" && this.looking)
			this.known.clear();
		else
			this.forget();
		return true;
	}

	/** All is asked for again. */
	forget(): void {
		this.known.clear();
		this.lanes.clear();
		this.pages.clear();
	}

	private async look<T>(question: () => Promise<T>): Promise<T> {
		this.looking++;
		try {
			return await question();
		} finally {
			this.looking--;
		}
	}
}

/** An answer that was given before; a failure is not kept. */
function kept<T>(answers: Map<string, Promise<T>>, key: string, question: () => Promise<T>): Promise<T> {
	let answer = answers.get(key);
	if (!answer) {
		answer = question();
		answers.set(key, answer);
		const failed = answer;
		answer.catch(() => answers.get(key) === failed && answers.delete(key));
	}
	return answer;
}

/** All sessions of ours that have begun. */
export class Sessions implements vscode.Disposable {
	private readonly sessions = new Map<string, Session>();
	/** Those whose adapter has attached. */
	private readonly begun = new Set<string>();
	private readonly changed = new vscode.EventEmitter<Session | undefined>();
	private readonly listeners: vscode.Disposable[];
	private readonly frames = new vscode.EventEmitter<Session>();
	/** One of them shows something else, or there are others. */
	readonly onDidChange = this.changed.event;
	/** The editor shows another frame of one. */
	readonly onDidChangeFrame = this.frames.event;

	constructor() {
		this.listeners = [
			this.changed, this.frames,
			vscode.debug.onDidStartDebugSession((s) => s.type === TYPE && this.add(s)),
			vscode.debug.onDidTerminateDebugSession((s) => this.remove(s)),
			vscode.debug.registerDebugAdapterTrackerFactory(TYPE, { createDebugAdapterTracker: (s) => this.tracker(s) }),
		];
	}

	all(): Session[] {
		return [...this.sessions.values()].filter((s) => this.begun.has(s.id));
	}

	hasCore(file: string): boolean {
		return [...this.sessions.values()].some((s) => s.coreFile === file);
	}

	/** The one that the editor shows. */
	active(): Session | undefined {
		return this.sessions.get(vscode.debug.activeDebugSession?.id ?? "");
	}

	dispose(): void {
		vscode.Disposable.from(...this.listeners).dispose();
	}

	/** It has begun: its first stop may have been told already. */
	private add(debug: vscode.DebugSession): void {
		this.begun.add(debug.id);
		this.of(debug);
		this.changed.fire(undefined);
	}

	private remove(debug: vscode.DebugSession): void {
		this.begun.delete(debug.id);
		if (this.sessions.delete(debug.id))
			this.changed.fire(undefined);
	}

	private of(debug: vscode.DebugSession): Session {
		const session = this.sessions.get(debug.id) ?? new Session(debug);
		this.sessions.set(debug.id, session);
		return session;
	}

	private tracker(debug: vscode.DebugSession): vscode.DebugAdapterTracker {
		return {
			onWillReceiveMessage: (message: Message) => {
				const session = this.of(debug);
				if (session.asks(message))
					this.frames.fire(session);
			},
			onDidSendMessage: (message: Message) => {
				const session = this.of(debug);
				if (session.hears(message))
					this.changed.fire(session);
			},
			onExit: () => this.remove(debug),
		};
	}
}
