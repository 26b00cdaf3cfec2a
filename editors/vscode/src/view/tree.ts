// SPDX-License-Identifier: MIT
// The view of GPUs: processes that use one, and what our sessions know of theirs.
import * as vscode from "vscode";
import { defaultSocket, Process } from "../client";
import { count, failure, processes } from "../processes";
import type { Session, Sessions } from "../sessions";
import { socketSetting } from "../settings";
import { Node, Place, row } from "./node";
import { Others, ProcessNode, SessionNode } from "./process";
import { Row } from "./row";

/** Between two looks at the processes, while somebody sees them. */
const POLL_MS = 3000;
/** What an adapter tells at once is drawn at once. */
const SETTLE_MS = 100;
/** How long the editor takes to draw the view anew, at most, and how often to look whether it has. */
const DRAWN_MS = 5000;
const STEP_MS = 20;

/** What the view as a whole has in it; it is no row itself. */
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

export class Tree implements vscode.TreeDataProvider<Row>, vscode.Disposable {
	private readonly changed = new vscode.EventEmitter<Row[] | undefined>();
	private readonly view: vscode.TreeView<Row>;
	private readonly listeners: vscode.Disposable[];
	private readonly roots: Roots;
	private readonly root: Row;
	private poll?: NodeJS.Timeout;
	private settle?: NodeJS.Timeout;
	/** It looks whether anything has changed; something has, since. */
	private looking = false;
	private again = false;
	readonly onDidChangeTreeData = this.changed.event;

	constructor(private readonly sessions: Sessions) {
		this.roots = new Roots(sessions);
		this.root = new Row(this.roots);
		this.view = vscode.window.createTreeView("gpu-agent.processes", { treeDataProvider: this, showCollapseAll: true });
		this.listeners = [
			this.view, this.changed,
			this.view.onDidChangeVisibility(() => this.watch()),
			this.view.onDidCollapseElement((e) => { e.element.closed = true; }),
			this.view.onDidExpandElement((e) => { e.element.closed = false; }),
			sessions.onDidChange(() => this.soon()),
		];
		this.watch();
	}

	/** Where the row that was clicked goes.  While the view is drawn anew, no row is known to be selected. */
	async selected(): Promise<Place | undefined> {
		for (let ms = 0; !this.view.selection.length && ms < DRAWN_MS; ms += STEP_MS)
			await new Promise((resolve) => setTimeout(resolve, STEP_MS));
		return this.view.selection[0]?.node.place;
	}

	/** Asks again, also for what nobody has said to have changed. */
	async refresh(): Promise<void> {
		this.sessions.all().forEach((s) => s.forget());
		await this.list();
	}

	getTreeItem(row: Row): vscode.TreeItem {
		return row.draw();
	}

	getChildren(row?: Row): Promise<Row[]> {
		return (row ?? this.root).open();
	}

	dispose(): void {
		clearInterval(this.poll);
		clearTimeout(this.settle);
		this.listeners.forEach((l) => l.dispose());
	}

	/** Nobody is asked for what nobody sees. */
	private watch(): void {
		clearInterval(this.poll);
		if (!this.view.visible)
			return;
		this.poll = setInterval(() => void this.list(), POLL_MS);
		void this.list();
	}

	private async list(): Promise<void> {
		const socket = socketSetting() ?? defaultSocket();
		try {
			this.roots.list = await processes(socket);
			this.view.message = this.roots.list.length ? undefined : "No process that you may see uses a GPU.";
		} catch (error) {
			this.roots.list = [];
			this.view.message = failure(socket, error);
		}
		await this.look();
	}

	private soon(): void {
		clearTimeout(this.settle);
		this.settle = setTimeout(() => void this.look(), SETTLE_MS);
	}

	/** Draws what has changed, one look at a time. */
	private async look(): Promise<void> {
		this.again = true;
		if (this.looking)
			return;
		this.looking = true;
		try {
			while (this.again) {
				this.again = false;
				await this.count();
				const rows = this.view.visible ? await this.root.changed() : [];
				if (rows.length)
					this.changed.fire(rows.includes(this.root) ? undefined : rows);
			}
		} finally {
			this.looking = false;
		}
	}

	/** On the mark of the view: how many groups have a fault. */
	private async count(): Promise<void> {
		const known = await Promise.all(this.sessions.all().map((s) => s.groups().catch(() => undefined)));
		const n = known.flatMap((g) => g?.groups ?? []).filter((t) => t.faulting).length;
		this.view.badge = n ? { value: n, tooltip: `${count(n, "group")} of waves stopped by a fault` } : undefined;
	}
}
