// SPDX-License-Identifier: MIT
// Exceptions in processes that nobody debugs.  The agent tells of each and lets the application have it at
// once: nothing is held.  Watching is nobody's deed, so that its failures are written to the log alone.
import * as vscode from "vscode";
import { AgentError, Client, defaultSocket, ExceptionRaisedParams, GpuException, GpuRecord, Process } from "./client";
import { count, nameOf } from "./processes";
import { RecordFiles, records, showRecord } from "./records";
import type { Sessions } from "./sessions";
import { socketSetting } from "./settings";
import { spelled } from "./spelled";
import { attach } from "./start";
import type { Texts } from "./texts";

const SETTING = "gpuAgent.watchExceptions";
/** Between two looks for processes that have begun. */
const POLL_MS = 5000;
/** Each takes one of the sessions that a user may have (sessions_per_user, 32): half are left for debugging. */
const WATCHED_MAX = 16;
/** The core file of a record may take so long to be written. */
const RECORD_MS = 15000;
const RECORD_STEP_MS = 500;

/** What says only that something was made, ended or switched. */
const NO_FAULTS: GpuException[] = ["queue_new", "device_new", "device_queue_delete", "process_runtime"];
const FAULTS = (Object.keys(GpuException) as GpuException[]).filter((e) => !NO_FAULTS.includes(e));

/** Tells processes of the same number apart. */
function keyOf(p: Process): string {
	return `${p.pid} ${p.start_ticks ?? ""}`;
}

/** What the process named itself.  In notices `[text](target)` would be a link, and a target may be a command. */
function plain(text: string): string {
	return spelled(text).replace(/[[\]]/g, "|");
}

/** In one line, for a person. */
export function describe(p: Pick<Process, "pid" | "comm">, raised: ExceptionRaisedParams): string {
	const group = raised.groups.at(0);
	const frame = group?.frames.at(0);
	const place = [
		...(group ? [`${count(group.waves, "wave")}${group.kernel?.name ? ` of ${group.kernel.name}` : ""}`] : []),
		...(frame?.file ? [`${frame.file.replace(/^.*\//, "")}:${frame.line ?? "?"}`] : []),
	].join(", ");
	const text = raised.text.replace(/\.$/, "");
	return plain(`GPU exception in process ${p.pid} ${p.comm}: ${text}${place ? ` (${place})` : ""}.`);
}

export class Watcher implements vscode.Disposable {
	private agent?: Client;
	/** By the agent's name of the session. */
	private readonly watched = new Map<string, Process>();
	/** These are not attached to, again or at all. */
	private readonly left = new Set<string>();
	/** Of these somebody needs the process alone. */
	private readonly leftPids = new Set<number>();
	/** Counts the changes of the settings: what was begun before one ends with it. */
	private generation = 0;
	/** A person has been told of these. */
	private readonly told = new Set<string>();
	private readonly log = vscode.window.createOutputChannel("GPU agent", { log: true });
	private readonly listeners: vscode.Disposable[];
	private poll?: NodeJS.Timeout;
	private looking = false;

	constructor(private readonly sessions: Sessions, private readonly files: RecordFiles, private readonly texts: Texts) {
		this.listeners = [
			this.log,
			vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("gpuAgent") && this.apply()),
		];
		this.apply();
	}

	/** Lets go of a process, for somebody who needs it alone. */
	async leave(pid: number): Promise<void> {
		this.leftPids.add(pid);
		for (const [session, p] of this.watched)
			if (p.pid === pid) {
				this.left.add(keyOf(p));
				this.watched.delete(session);
				await this.agent?.sessionDetach({ session });
			}
	}

	dispose(): void {
		this.generation++;
		clearInterval(this.poll);
		void this.agent?.close();
		vscode.Disposable.from(...this.listeners).dispose();
	}

	/** As the settings are now.  With the connection end the sessions that it holds. */
	private apply(): void {
		this.generation++;
		clearInterval(this.poll);
		void this.agent?.close();
		if (!vscode.workspace.getConfiguration().get<boolean>(SETTING, false))
			return;
		this.poll = setInterval(() => void this.look(), POLL_MS);
		void this.look();
	}

	private async look(): Promise<void> {
		if (this.looking)
			return;
		this.looking = true;
		const generation = this.generation;
		try {
			const agent = this.agent ?? await this.connect(generation);
			const { processes } = await agent.processList();
			for (const p of processes)
				if (generation === this.generation && this.watched.size < WATCHED_MAX && this.wants(p))
					await this.watch(agent, p);
		} catch (error) {
			this.log.debug(String(error));
		} finally {
			this.looking = false;
		}
	}

	private async connect(generation: number): Promise<Client> {
		const agent = await Client.connect(socketSetting() ?? defaultSocket());
		if (generation !== this.generation) {
			void agent.close();
			throw new Error("the settings have changed meanwhile");
		}
		agent.on("exception.raised", (raised) => void this.raised(raised).catch((error: unknown) => this.log.warn(String(error))));
		agent.on("session.ended", ({ session, reason }) => {
			const p = this.watched.get(session);
			if (!p)
				return;
			this.log.info(`process ${nameOf(p)} is not watched any more: ${reason}`);
			this.left.add(keyOf(p));
			this.watched.delete(session);
		});
		this.agent = agent;
		void agent.closed.then(() => {
			if (this.agent === agent) {
				this.agent = undefined;
				this.watched.clear();
			}
		});
		return agent;
	}

	private wants(p: Process): boolean {
		const key = keyOf(p);
		return p.uid === process.getuid?.() && (p.debuggable || p.session !== undefined) && !this.left.has(key) && !this.leftPids.has(p.pid) &&
			![...this.watched.values()].some((w) => keyOf(w) === key);
	}

	private async watch(agent: Client, p: Process): Promise<void> {
		let session: string | undefined;
		try {
			({ session } = await agent.sessionAttach({ pid: p.pid }));
			if (this.leftPids.has(p.pid)) {
				await agent.sessionDetach({ session });
				return;
			}
			this.watched.set(session, p);
			await agent.exceptionSubscribe({ session, exceptions: FAULTS });
			this.log.info(`process ${nameOf(p)} is watched`);
		} catch (error) {
			if (!(error instanceof AgentError))
				throw error;
			this.log.info(`process ${nameOf(p)} cannot be watched: ${error.message}`);
			// A limit may be less of one later; everything else stays as it is.
			if (!error.is("limit"))
				this.left.add(keyOf(p));
			if (session !== undefined && this.watched.delete(session))
				await agent.sessionDetach({ session }).catch(() => undefined);
		}
	}

	/** One notice for a process, however many exceptions follow.  A debugger tells by itself. */
	private async raised(raised: ExceptionRaisedParams): Promise<void> {
		const p = this.watched.get(raised.session);
		if (!p || this.told.has(keyOf(p)) || this.sessions.all().some((s) => s.pid === p.pid))
			return;
		this.told.add(keyOf(p));
		const text = describe(p, raised);
		this.log.info(text);
		const open = await this.isKept(raised.session).catch(() => false) ? ["Open Record"] : [];
		const chosen = await vscode.window.showWarningMessage(text, "Attach", ...open);
		if (chosen === "Attach")
			await attach(p.pid);
		else if (chosen)
			await this.openRecord(p, raised.time_us).catch((error: unknown) => {
				void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
			});
	}

	/** A rule of the agent has the process, too. */
	private async isKept(session: string): Promise<boolean> {
		const list = await this.agent?.sessionList();
		return list?.sessions.some((s) => s.session === session && s.rule !== undefined) ?? false;
	}

	private async openRecord(p: Process, timeUs: number): Promise<void> {
		const record = await vscode.window.withProgress(
			{ location: vscode.ProgressLocation.Notification, title: `Record of process ${p.pid}` }, () => recordOf(p.pid, timeUs));
		if (!record)
			throw new Error(`No record of the exception in process ${p.pid} is kept: its rule may have one of an exception before.`);
		await showRecord(this.files, this.texts, record);
	}
}

/** The one of that exception, as soon as its core file is whole; or else the newest of the process. */
async function recordOf(pid: number, timeUs: number): Promise<GpuRecord | undefined> {
	const find = (sinceUs?: number): Promise<GpuRecord[]> =>
		records(socketSetting() ?? defaultSocket(), [`PID=${pid}`, "REASON=exception"], sinceUs);
	for (let ms = 0; ms < RECORD_MS; ms += RECORD_STEP_MS) {
		const found = (await find(timeUs)).at(-1);
		if (found && found.body !== "gone")
			return found;
		await new Promise((resolve) => setTimeout(resolve, RECORD_STEP_MS));
	}
	return (await find())[0];
}
