// SPDX-License-Identifier: MIT
// The debugger of type "gpu-agent": which process, which adapter, and the views beside it.  What is
// debugged is the adapter's business (gpu-agentctl dap).
import * as vscode from "vscode";
import { commands } from "./commands";
import { coreEditor } from "./core";
import { LaneTables } from "./lanes/panel";
import { links } from "./links";
import { pickProcess } from "./picker";
import { environment, program } from "./program";
import { Queues } from "./queues";
import { RecordFiles } from "./records";
import { Sessions, TYPE } from "./sessions";
import { socketSetting } from "./settings";
import { attachTo } from "./start";
import { Texts } from "./texts";
import { wireTrace } from "./trace";
import { vendorContext } from "./vendor";
import { Records } from "./view/records";
import { Tree } from "./view/tree";
import { Watcher } from "./watcher";

const FOLDERS_MAX = 16;

/** Where sources may be that are not where the compiler saw them; the adapter takes no more. */
function foldersOfWorkspace(): string[] {
	const folders = vscode.workspace.workspaceFolders ?? [];
	return folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath).slice(0, FOLDERS_MAX);
}

/** Asks for the process where the configuration names nothing; nothing is started when that is cancelled. */
async function resolve(
	_folder: vscode.WorkspaceFolder | undefined, config: vscode.DebugConfiguration,
): Promise<vscode.DebugConfiguration | undefined> {
	const found = { sourceFolders: foldersOfWorkspace(), ...config };
	if (config.pid || config.processId || config.coreFile)
		return found;
	const pid = await pickProcess(config.socket);
	return pid ? { ...attachTo({ pid }), ...found, pid } : undefined;
}

function adapter(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
	const env = environment(socketSetting(session.configuration.socket));
	return new vscode.DebugAdapterExecutable(program(), ["dap"], { env });
}

function statusBar(): vscode.StatusBarItem {
	const item = vscode.window.createStatusBarItem("gpu-agent.attach", vscode.StatusBarAlignment.Left);
	item.name = "GPU agent";
	item.text = "$(circuit-board) GPU agent";
	item.tooltip = "Attach to a GPU process";
	item.command = "gpu-agent.attach";
	item.show();
	return item;
}

function debuggers(): vscode.Disposable[] {
	const offered = (): vscode.DebugConfiguration[] => [attachTo({ pid: "${command:PickProcess}" })];
	const provider: vscode.DebugConfigurationProvider = {
		provideDebugConfigurations: offered, resolveDebugConfiguration: resolve,
	};
	return [
		vscode.debug.registerDebugConfigurationProvider(TYPE, provider),
		vscode.debug.registerDebugConfigurationProvider(
			TYPE, { provideDebugConfigurations: offered },
			vscode.DebugConfigurationProviderTriggerKind.Dynamic),
		vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, { createDebugAdapterDescriptor: adapter }),
	];
}

export function activate(context: vscode.ExtensionContext): void {
	const sessions = new Sessions();
	const tree = new Tree(sessions);
	const stored = new Records();
	const files = new RecordFiles(vscode.Uri.joinPath(context.storageUri ?? context.globalStorageUri, "records").fsPath);
	const texts = new Texts();
	const watcher = new Watcher(sessions, files, texts);
	const queues = new Queues();
	const lanes = new LaneTables(sessions);
	void files.clean();
	context.subscriptions.push(
		...debuggers(), sessions, tree, stored, texts, watcher, lanes, ...vendorContext(sessions),
		...commands({ sessions, tree, stored, files, texts, watcher, lanes }), coreEditor(sessions), links(sessions),
		vscode.debug.registerDebugAdapterTrackerFactory(TYPE, {
			createDebugAdapterTracker: (session) => queues.tracker(session),
		}),
		vscode.debug.onDidChangeActiveDebugSession(() => queues.show()),
	);
	const file = process.env.GPU_AGENT_DAP_TRACE;
	if (file)
		context.subscriptions.push(vscode.debug.registerDebugAdapterTrackerFactory(TYPE, wireTrace(file)));
	context.subscriptions.push(statusBar());
}
