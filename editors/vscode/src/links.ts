// SPDX-License-Identifier: MIT
// Links that open a core file or attach to a process.  Anybody can write one, so nothing in it is believed,
// and nothing is done before a person has agreed.
import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { defaultSocket } from "./client";
import { processes } from "./processes";
import type { Sessions } from "./sessions";
import { socketSetting } from "./settings";
import { spelled } from "./spelled";
import { attach, openCore } from "./start";

/** PID_MAX_LIMIT of Linux. */
const PID_MAX = 4194304;
/** sun_path of a Unix socket, without the zero at its end. */
const SOCKET_PATH_MAX = 107;
const PATH_MAX = 4095;

export type Link = { does: "core"; path: string } | { does: "attach"; pid: number; socket?: string };

/** The editor has decoded the query: an ampersand always separates two parameters. */
function parametersOf(query: string, known: string[]): Map<string, string> {
	const parameters = new Map<string, string>();
	for (const part of query.split("&").filter((p) => p)) {
		const at = part.indexOf("=");
		const name = at < 0 ? part : part.slice(0, at);
		if (!known.includes(name))
			throw new Error(`The link has a parameter that is not known: ${quoted(name)}`);
		if (parameters.has(name))
			throw new Error(`The link has two parameters ${name}`);
		parameters.set(name, at < 0 ? "" : part.slice(at + 1));
	}
	return parameters;
}

/** What a link says, for a message. */
function quoted(text: string): string {
	return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function checkPath(name: string, file: string, longest: number): string {
	if (!path.isAbsolute(file) || path.normalize(file) !== file)
		throw new Error(`The link's ${name} is no absolute path without "." and "..": ${quoted(file)}`);
	// Also what turns the direction of writing: a person is to read the path.
	if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(file))
		throw new Error(`The link's ${name} has characters that cannot be seen`);
	if (Buffer.byteLength(file) > longest)
		throw new Error(`The link's ${name} is longer than ${longest} bytes`);
	return file;
}

/** @throws Error  what is wrong with the link, for a person */
export function parseLink(what: string, query: string): Link {
	if (what === "/core") {
		const file = parametersOf(query, ["path"]).get("path") ?? "";
		return { does: "core", path: checkPath("path", file, PATH_MAX) };
	}
	if (what !== "/attach")
		throw new Error(`The link asks for something that is not known: ${quoted(what)}`);
	const parameters = parametersOf(query, ["pid", "socket"]);
	const pid = parameters.get("pid") ?? "";
	if (!/^[1-9][0-9]{0,6}$/.test(pid) || Number(pid) > PID_MAX)
		throw new Error(`The link's pid is no number of a process: ${quoted(pid)}`);
	const socket = parameters.get("socket");
	return {
		does: "attach", pid: Number(pid),
		...(socket === undefined ? {} : { socket: checkPath("socket", socket, SOCKET_PATH_MAX) }),
	};
}

/** A socket of another user would be an agent that says what that user likes. */
function checkSocket(file: string): void {
	const stat = fs.statSync(file, { throwIfNoEntry: false });
	if (!stat?.isSocket())
		throw new Error(`The link's socket is none: ${file}`);
	if (stat.uid !== 0 && stat.uid !== process.getuid?.())
		throw new Error(`The link's socket belongs to another user: ${file}`);
}

async function agrees(question: string, detail: string, button: string): Promise<boolean> {
	return await vscode.window.showWarningMessage(question, { modal: true, detail }, button) === button;
}

async function followCore(sessions: Sessions, file: string): Promise<void> {
	// A pipe would be waited for, a device be read without end.
	if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile())
		throw new Error(`The link's path is no file: ${file}`);
	if (await agrees("A link asks to open a core file.", file, "Open"))
		await openCore(sessions, file);
}

/** Its command, from the agent that the editor uses anyway. */
async function nameOf(pid: number): Promise<string> {
	const list = await processes(socketSetting() ?? defaultSocket()).catch(() => []);
	const found = list.find((p) => p.pid === pid);
	return found ? spelled(found.comm) : "not known to the agent";
}

async function followAttach(pid: number, socket?: string): Promise<void> {
	if (socket !== undefined)
		checkSocket(socket);
	const detail = socket === undefined ? `Process ${pid}: ${await nameOf(pid)}` : `Process ${pid}, by the agent at ${socket}`;
	if (await agrees("A link asks to attach to a GPU process.", detail, "Attach"))
		await attach(pid, socket);
}

async function follow(sessions: Sessions, uri: vscode.Uri): Promise<void> {
	const link = parseLink(uri.path, uri.query);
	await (link.does === "core" ? followCore(sessions, link.path) : followAttach(link.pid, link.socket));
}

export function links(sessions: Sessions): vscode.Disposable {
	return vscode.window.registerUriHandler({
		handleUri: (uri) => follow(sessions, uri).catch((error: unknown) => {
			void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
		}),
	});
}
