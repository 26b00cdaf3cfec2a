-- SPDX-License-Identifier: MIT
-- GPU processes in nvim-dap:
--
--   vim.opt.runtimepath:append("/usr/share/doc/gpu-agent/editors/nvim")
--   require("gpu-agent").setup()
--
-- dap.continue() then offers "GPU process", which asks for one of those that the agent knows, and "GPU core file".
-- The commands are those of plugin/gpu-agent.lua; :help gpu-agent describes them.
local M = { command = "gpu-agentctl", filetypes = { "c", "cpp", "cuda", "python" } }

local processes = require("gpu-agent.processes")

local function tell(text)
  vim.notify("gpu-agent: " .. text, vim.log.levels.ERROR)
end

-- Ask for a process; a value that nvim-dap waits for.  One that cannot be debugged is shown with the reason, and not taken.
function M.pick()
  return coroutine.create(function(session)
    local function done(pid)
      coroutine.resume(session, pid or require("dap").ABORT)
    end
    local list, problem = processes.list(M.command)
    if not list or #list == 0 then
      tell(problem or "no process that you may see uses a GPU")
      done()
      return
    end
    vim.ui.select(list, { prompt = "GPU process", format_item = processes.describe }, function(process)
      if process and not process.debuggable then
        tell(processes.why_not(process, M.command))
      end
      done(process and process.debuggable and process.pid)
    end)
  end)
end

-- Ask for a core file; a value that nvim-dap waits for.
function M.pick_core()
  return coroutine.create(function(session)
    vim.ui.input({ prompt = "GPU core file: ", completion = "file" }, function(path)
      coroutine.resume(session, path and path ~= "" and vim.fn.fnamemodify(path, ":p") or require("dap").ABORT)
    end)
  end)
end

-- Requests about the thread that is shown, if they name none.
local about_thread = { ["gpuAgent/waves"] = true, ["gpuAgent/lanes"] = true, ["gpuAgent/focus"] = true }

-- Send a request of the session, and call a function with its answer.
local function ask(command, arguments, done)
  local session = require("dap").session()
  if not session then
    tell("there is no session")
    return
  end
  if about_thread[command] then
    arguments.threadId = arguments.threadId or session.stopped_thread_id
  end
  session:request(command, arguments, function(err, body)
    if err then
      tell(err.message or vim.inspect(err))
    else
      done(body)
    end
  end)
end

-- The editor goes to what was chosen, as if the thread had stopped there.
local function focus(arguments)
  arguments.reveal = true
  ask("gpuAgent/focus", arguments, function() end)
end

-- Choose a lane of the wave that is shown.
function M.choose_lane()
  ask("gpuAgent/lanes", {}, function(body)
    vim.ui.select(body.lanes, {
      prompt = "Lane",
      format_item = function(l)
        return ("%d %s%s%s"):format(l.lane, l.active and "active" or "inactive", l.exception and " " .. l.exception or "",
          l.shown and " (shown)" or "")
      end,
    }, function(l)
      if l then
        focus({ lane = l.lane })
      end
    end)
  end)
end

-- Choose a wave of the group that is shown, from the first ones of it.
function M.choose_wave()
  ask("gpuAgent/waves", { count = 1000 }, function(body)
    vim.ui.select(body.waves, {
      prompt = ("Wave, of %d"):format(body.total),
      format_item = function(w)
        return ("%d:%d:%d workgroup %s"):format(w.ref.queue_id, w.ref.unit, w.ref.index, table.concat(w.ref.workgroup, ","))
      end,
    }, function(w)
      if w then
        focus({ wave = w.ref })
      end
    end)
  end)
end

-- Go to a group of waves; devices and queues are told with it.
function M.choose_group()
  ask("gpuAgent/groups", vim.empty_dict(), function(body)
    local prompt = ("Group, of %d; %d devices, %d queues, %d waves"):format(body.total, #body.devices, #body.queues, body.waves)
    vim.ui.select(body.groups, {
      prompt = prompt,
      format_item = function(g)
        return g.name .. (g.faulting and " (faulting)" or "")
      end,
    }, function(g)
      if g then
        focus({ threadId = g.threadId })
      end
    end)
  end)
end

-- Choose which exceptions stop the GPU: each choice turns one on or off, and the list comes again until it is left.
function M.choose_exceptions()
  local session = require("dap").session()
  if not session then
    tell("there is no session")
    return
  end
  local filters = session.capabilities.exceptionBreakpointFilters or {}
  -- What was chosen belongs to the session, and begins as the adapter has it.
  if not session.gpu_agent_filters then
    session.gpu_agent_filters = {}
    for _, filter in ipairs(filters) do
      session.gpu_agent_filters[filter.filter] = filter.default or false
    end
  end
  local on = session.gpu_agent_filters
  vim.ui.select(filters, {
    prompt = "Exceptions that stop the GPU",
    format_item = function(filter)
      return (on[filter.filter] and "[x] " or "[ ] ") .. filter.label
    end,
  }, function(filter)
    if not filter then
      return
    end
    on[filter.filter] = not on[filter.filter]
    session:set_exception_breakpoints(vim.tbl_filter(function(name)
      return on[name]
    end, vim.tbl_keys(on)))
    M.choose_exceptions()
  end)
end

-- Start the debugger of the GPU's vendor, in a terminal, with a command that is a list.
function M.start_debugger(command)
  if vim.fn.executable(command[1]) == 0 then
    tell(("the agent has let go of the process, which runs; %s is not in the path of this editor\n%s"):format(command[1],
      table.concat(command, " ")))
    return
  end
  vim.cmd.new()
  vim.fn.termopen(command)
  vim.cmd.startinsert()
end

-- Let the agent release a process, and call a function with the command that goes on there.
local function release(pid, done)
  vim.system({ M.command, "attach", tostring(pid), "--hand-over", "--json=short" }, { text = true }, vim.schedule_wrap(function(run)
    if run.code == 0 then
      done(vim.json.decode(run.stdout).command)
    else
      tell(vim.trim(run.stderr))
    end
  end))
end

-- End the session and go on in the vendor's debugger: a process has one debugger at a time.
function M.hand_over()
  local dap = require("dap")
  local session = dap.session()
  local pid = session and (session.config.pid or session.config.processId)
  if not pid then
    tell(session and "a core file has no process" or "there is no session")
    return
  end
  -- The adapter has left when the connection to it is gone.
  session.on_close["gpu-agent"] = function()
    vim.schedule(function()
      release(pid, M.start_debugger)
    end)
  end
  dap.disconnect({ terminateDebuggee = false })
end

-- Take control from the client that has it.
function M.take_control()
  ask("gpuAgent/takeControl", vim.empty_dict(), function(body)
    vim.notify("gpu-agent: this session has " .. (body.control and "" or "no ") .. "control")
  end)
end

-- options: command, filetypes
function M.setup(options)
  local dap = require("dap")
  for name, value in pairs(options or {}) do
    M[name] = value
  end
  -- Where the runtime path got this folder too late for its plugins to be loaded.
  vim.cmd.runtime("plugin/gpu-agent.lua")
  -- A stop is one of the whole GPU, and where to look.  nvim-dap would take one at another thread than the last for that of
  -- a thread among many, and let the GPU run (auto_continue_if_many_stopped).
  dap.listeners.before.event_stopped["gpu-agent"] = function(session)
    if session.config.type == "gpu-agent" then
      session.stopped_thread_id = nil
    end
  end
  dap.adapters["gpu-agent"] = { type = "executable", command = M.command, args = { "dap" } }
  for _, filetype in ipairs(M.filetypes) do
    dap.configurations[filetype] = dap.configurations[filetype] or {}
    vim.list_extend(dap.configurations[filetype], {
      { name = "GPU process", type = "gpu-agent", request = "attach", pid = M.pick, sourceFolders = { "${workspaceFolder}" } },
      { name = "GPU core file", type = "gpu-agent", request = "attach", coreFile = M.pick_core,
        sourceFolders = { "${workspaceFolder}" } },
    })
  end
end

return M
