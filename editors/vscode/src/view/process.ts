// SPDX-License-Identifier: MIT
// Processes that use a GPU, and core files that are open.
import * as path from "node:path";
import * as vscode from "vscode";
import type { Process } from "../client";
import { commandLineOf, factsOf, nameOf, whyNot } from "../processes";
import type { Session } from "../sessions";
import { shortened, spelled } from "../spelled";
import { devicesOf } from "./device";
import { FAULT, Node, row } from "./node";

/** The editor cuts what does not fit, but measures all of it. */
const COMMAND_LINE_MAX = 200;

async function icon(session: Session): Promise<vscode.ThemeIcon> {
	const groups = await session.groups().catch(() => undefined);
	return groups?.groups.some((t) => t.faulting) ? FAULT : new vscode.ThemeIcon("debug-alt");
}

export class ProcessNode implements Node {
	readonly id: string;
	private shown = new vscode.ThemeIcon("circuit-board");

	constructor(readonly process: Process, readonly session?: Session) {
		this.id = `process ${process.pid} ${process.start_ticks ?? ""} ${session?.id ?? ""}`;
	}

	/** What must be known before the row can be drawn. */
	async prepared(): Promise<this> {
		if (this.session)
			this.shown = await icon(this.session);
		return this;
	}

	item(): vscode.TreeItem {
		const p = this.process;
		const not = this.session ? undefined : whyNot(p);
		const line = commandLineOf(p);
		const facts = factsOf(p).join(", ");
		const item = row(this.id, nameOf(p),
			not ?? (line === undefined ? facts : `${facts}: ${shortened(line, COMMAND_LINE_MAX)}`), this.session !== undefined);
		item.iconPath = not ? new vscode.ThemeIcon("circle-slash") : this.shown;
		item.tooltip = [
			line, ...(p.exe === undefined ? [] : [spelled(p.exe)]), facts,
			...(p.rank?.job === undefined ? [] : [`job ${spelled(p.rank.job)}`]), not,
		].filter((t) => t).join("\n");
		item.contextValue = not ? "closed" : `${this.session ? "session" : "process"} ${p.vendor}`;
		if (this.session)
			item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
		return item;
	}

	children(): Promise<Node[]> | Node[] {
		return this.session ? devicesOf(this.session.id, this.session) : [];
	}
}

/**
 * Processes without a session, beside those with one.  They come and go at any time: were they on one
 * level with those, these would be drawn anew each time.
 */
export class Others implements Node {
	readonly id = "others";

	constructor(private readonly processes: ProcessNode[]) {}

	item(): vscode.TreeItem {
		const item = row(this.id, "other processes", "", true);
		item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
		return item;
	}

	children(): Node[] {
		return this.processes;
	}
}

/** A core file, or a process that another agent knows. */
export class SessionNode implements Node {
	readonly id: string;
	private shown = new vscode.ThemeIcon("archive");

	constructor(readonly session: Session) {
		this.id = session.id;
	}

	async prepared(): Promise<this> {
		this.shown = await icon(this.session);
		return this;
	}

	item(): vscode.TreeItem {
		const { pid, coreFile } = this.session;
		const item = coreFile === undefined ? row(this.id, `${pid}`, "", true) : row(this.id, path.basename(coreFile), "core file", true);
		item.tooltip = coreFile ?? "A process of another agent";
		item.iconPath = this.shown;
		item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
		return item;
	}

	children(): Promise<Node[]> {
		return devicesOf(this.session.id, this.session);
	}
}
