// SPDX-License-Identifier: MIT
// The view of GPUs: processes that use one, and what our sessions know of theirs.
import type * as vscode from "vscode";
import { defaultSocket, Process } from "../client";
import { count, failure, processes } from "../processes";
import type { Session, Sessions } from "../sessions";
import { socketSetting } from "../settings";
import { Node, row } from "./node";
import { Others, ProcessNode, SessionNode } from "./process";
import { View } from "./view";

class Roots implements Node {
	readonly id = "processes";
	list: Process[] = [];

	constructor(private readonly sessions: Sessions) {}

	item(): vscode.TreeItem {
		return row(this.id, "Processes", "", true);
	}

	async children(): Promise<Node[]> {
		const all = this.sessions.all();
		const others = this.list.filter((p) => !all.some((s) => s.pid === p.pid)).map((p) => new ProcessNode(p));
		const nodes = await Promise.all(all.map((s) => this.nodeOf(s).prepared()));
		return nodes.length ? [...nodes, new Others(others)] : others;
	}

	private nodeOf(session: Session): ProcessNode | SessionNode {
		const process = this.list.find((p) => p.pid === session.pid);
		return process ? new ProcessNode(process, session) : new SessionNode(session);
	}
}

export class Tree extends View {
	private readonly roots: Roots;

	constructor(private readonly sessions: Sessions) {
		const roots = new Roots(sessions);
		super("gpu-agent.processes", roots);
		this.roots = roots;
		this.listeners.push(sessions.onDidChange(() => this.soon()));
		this.watch();
	}

	/** Asks again, also for what nobody has said to have changed. */
	async refreshAll(): Promise<void> {
		this.sessions.all().forEach((s) => s.forget());
		await this.refresh();
	}

	protected async ask(): Promise<void> {
		const socket = socketSetting() ?? defaultSocket();
		try {
			this.roots.list = await processes(socket);
			this.view.message = this.roots.list.length ? undefined : "No process that you may see uses a GPU.";
		} catch (error) {
			this.roots.list = [];
			this.view.message = failure(socket, error);
		}
	}

	/** On the mark of the view: how many groups have a fault. */
	protected override async prepare(): Promise<void> {
		const known = await Promise.all(this.sessions.all().map((s) => s.groups().catch(() => undefined)));
		const n = known.flatMap((g) => g?.groups ?? []).filter((t) => t.faulting).length;
		this.view.badge = n ? { value: n, tooltip: `${count(n, "group")} of waves stopped by a fault` } : undefined;
	}
}
