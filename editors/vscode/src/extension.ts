// SPDX-License-Identifier: MIT
// The debugger of type "gpu-agent": which process, which adapter.  What is debugged is the adapter's
// business (gpu-agentctl dap).
import * as vscode from "vscode";
import { chooseLane } from "./lanes";
import { pickProcess } from "./picker";
import { Queues } from "./queues";
import { socketSetting, setting } from "./settings";
import { wireTrace } from "./trace";

const TYPE = "gpu-agent";
const NAME = "GPU process";

function attachTo(target: { pid: string } | { coreFile: string }, name = NAME): vscode.DebugConfiguration {
	return { type: TYPE, request: "attach", name, ...target };
}

/** Asks for the process where the configuration names nothing; nothing is started when that is cancelled. */
async function resolve(
	_folder: vscode.WorkspaceFolder | undefined, config: vscode.DebugConfiguration,
): Promise<vscode.DebugConfiguration | undefined> {
	if (config.pid || config.processId || config.coreFile)
		return config;
	const pid = await pickProcess(config.socket);
	return pid ? { ...attachTo({ pid }), ...config, pid } : undefined;
}

function adapter(session: vscode.DebugSession): vscode.DebugAdapterDescriptor {
	const socket = socketSetting(session.configuration.socket);
	const env: Record<string, string> = socket ? { GPU_AGENT_SOCKET: socket } : {};
	const path = setting("path") || process.env.GPU_AGENT_CTL || "gpu-agentctl";
	return new vscode.DebugAdapterExecutable(path, ["dap"], { env });
}

async function attach(): Promise<void> {
	await vscode.debug.startDebugging(undefined, { type: TYPE, request: "attach", name: NAME });
}

async function openCore(): Promise<void> {
	const files = await vscode.window.showOpenDialog({ title: "Core file", openLabel: "Open" });
	if (files)
		await vscode.debug.startDebugging(undefined, attachTo({ coreFile: files[0].fsPath }, "GPU core"));
}

/** A session of ours that the editor shows. */
function active(): vscode.DebugSession | undefined {
	const session = vscode.debug.activeDebugSession;
	return session?.type === TYPE ? session : undefined;
}

/** From another client of the same user, or as an administrator. */
async function takeControl(): Promise<void> {
	try {
		if (!await active()?.customRequest("gpuAgent/takeControl"))
			return;
		vscode.window.setStatusBarMessage("This session controls the GPU process", 5000);
	} catch (e) {
		await vscode.window.showErrorMessage((e as Error).message);
	}
}

async function lane(): Promise<void> {
	const session = active();
	try {
		if (session)
			await chooseLane(session);
	} catch (e) {
		await vscode.window.showErrorMessage((e as Error).message);
	}
}

/** Also where the editor takes the session for stopped already.  The answer to a failure shows itself. */
async function pause(): Promise<void> {
	await Promise.resolve(active()?.customRequest("pause", { threadId: 1 })).catch(() => undefined);
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

export function activate(context: vscode.ExtensionContext): void {
	const provider: vscode.DebugConfigurationProvider = {
		provideDebugConfigurations: () => [attachTo({ pid: "${command:PickProcess}" })],
		resolveDebugConfiguration: resolve,
	};
	context.subscriptions.push(
		vscode.debug.registerDebugConfigurationProvider(TYPE, provider),
		vscode.debug.registerDebugConfigurationProvider(
			TYPE, { provideDebugConfigurations: provider.provideDebugConfigurations },
			vscode.DebugConfigurationProviderTriggerKind.Dynamic),
		vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, { createDebugAdapterDescriptor: adapter }),
		vscode.commands.registerCommand("gpu-agent.attach", attach),
		vscode.commands.registerCommand("gpu-agent.openCore", openCore),
		vscode.commands.registerCommand("gpu-agent.takeControl", takeControl),
		vscode.commands.registerCommand("gpu-agent.chooseLane", lane),
		vscode.commands.registerCommand("gpu-agent.pause", pause),
		vscode.commands.registerCommand("gpu-agent.pickProcess", (config?: vscode.DebugConfiguration) =>
			pickProcess(config?.socket)),
	);
	const queues = new Queues();
	context.subscriptions.push(
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
