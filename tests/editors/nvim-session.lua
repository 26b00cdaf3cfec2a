-- SPDX-License-Identifier: MIT
-- A session of nvim-dap without a human.  Environment: ADAPTER, PID, NVIM_DAP (its folder), EDITORS (ours).
-- Says words on standard output, "paused" first, and waits for a line after each; the last line is what was seen.
local PATIENCE_MS = 60000
local seen = { stops = {} }

local function say(text)
  io.stdout:write(text .. "\n")
  io.stdout:flush()
end

local function fail(text)
  io.stderr:write(text .. "\n")
  vim.cmd("cq")
end

local function wait_for(what, condition)
  if not vim.wait(PATIENCE_MS, condition, 10) then
    fail("no " .. what)
  end
end

-- The answer to a request of the session.
local function ask(session, command, arguments)
  local answer, problem
  session:request(command, arguments, function(err, body)
    problem, answer = err, body or {}
  end)
  wait_for("answer to " .. command, function()
    return answer or problem
  end)
  return problem and fail(command .. ": " .. vim.inspect(problem)) or answer
end

-- Turn off each exception that stops the GPU, as a person does; what was sent last.
local function turn_off_all_exceptions(session)
  local sent
  local request, select = session.request, vim.ui.select
  session.request = function(self, command, arguments, ...)
    sent = command == "setExceptionBreakpoints" and arguments or sent
    return request(self, command, arguments, ...)
  end
  vim.ui.select = function(rows, options, choose)
    for _, row in ipairs(rows) do
      if options.format_item(row):find("^%[x%]") then
        return choose(row)
      end
    end
    choose(nil)
  end
  vim.cmd("GpuAgentExceptions")
  session.request, vim.ui.select = request, select
  return sent
end

-- What is told to the user while a function runs.
local function said_by(act)
  local notify, said = vim.notify, nil
  vim.notify = function(text)
    said = text
  end
  act()
  vim.notify = notify
  return said
end

-- The line of the console about an exception.
local function told()
  local line
  wait_for("line about the exception", function()
    local console = vim.fn.bufnr("dap-repl", false)
    for _, text in ipairs(console > 0 and vim.api.nvim_buf_get_lines(console, 0, -1, false) or {}) do
      line = text:find("^Exception: ") and text or line
    end
    return line
  end)
  return line
end

-- What the programs were started for that stand for gpu-agentctl.
local started = vim.fn.tempname()

-- What is said when a choice is made while gpu-agentctl list is a program that says an answer, a command of the shell.
local function refusal(dap, gpu, answer)
  local program, said = vim.fn.tempname(), nil
  vim.fn.writefile({ "#!/bin/sh", 'echo "$1" >>' .. started, answer }, program)
  vim.fn.setfperm(program, "rwx------")
  local command, select, notify = gpu.command, vim.ui.select, vim.notify
  gpu.command, dap.adapters["gpu-agent"].command = program, program
  vim.ui.select = function(rows, _, choose)
    choose(rows[1])
  end
  vim.notify = function(text)
    said = said or text
  end
  dap.run(dap.configurations.cpp[1])
  wait_for("refusal", function()
    return said
  end)
  gpu.command, vim.ui.select, vim.notify = command, select, notify
  return (said:gsub(vim.pesc(program), "gpu-agentctl"))
end

local function see_refusals(dap, gpu)
  return {
    refusal(dap, gpu, [[echo '{"processes": [{"pid": 7, "comm": "a", "vendor": "amd", "queues": 1, "debuggable": false, ]]
      .. [["reason": "somebody traces it"}]}']]),
    refusal(dap, gpu, "echo 'no agent listens' >&2; exit 4"),
  }
end

local function run()
  vim.opt.runtimepath:prepend(os.getenv("NVIM_DAP"))
  vim.opt.runtimepath:append(os.getenv("EDITORS") .. "/nvim")
  vim.cmd("runtime plugin/dap.lua")
  vim.cmd("runtime plugin/gpu-agent.lua")
  local dap = require("dap")
  local gpu = require("gpu-agent")
  gpu.setup({ command = os.getenv("ADAPTER") })
  dap.listeners.after.event_stopped["test"] = function(_, body)
    table.insert(seen.stops, body.reason)
  end
  local known
  dap.listeners.after.event_thread["test"] = function()
    known = true
  end

  seen.refusals = see_refusals(dap, gpu)
  vim.cmd("checkhealth gpu-agent")
  seen.health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  vim.cmd("bdelete")
  vim.cmd("helptags " .. os.getenv("TAGS"))

  dap.adapters["gpu-agent"].command = gpu.command

  -- What the picker does when the user takes the process.
  vim.ui.input = function(_, answer)
    answer(os.getenv("CORE"))
  end
  vim.ui.select = function(processes, options, choose)
    for _, process in ipairs(processes) do
      if tostring(process.pid) == os.getenv("PID") then
        seen.described = options.format_item(process)
        choose(process)
      end
    end
  end
  dap.run(dap.configurations.cpp[1])
  wait_for("thread", function()
    return dap.session() and known
  end)
  local session = dap.session()

  local function pause()
    local before = #seen.stops
    dap.pause(1)
    wait_for("stop", function()
      return #seen.stops > before and session.stopped_thread_id and session.current_frame
    end)
  end

  pause()
  local frame = session.current_frame
  seen.frame, seen.line, seen.pc = frame.name, frame.line, frame.instructionPointerReference
  seen.threads = vim.tbl_map(function(thread)
    return thread.name
  end, ask(session, "threads", {}).threads)
  seen.scopes = {}
  for _, scope in ipairs(ask(session, "scopes", { frameId = frame.id }).scopes) do
    local values = vim.empty_dict()
    for _, v in ipairs(ask(session, "variables", { variablesReference = scope.variablesReference }).variables) do
      values[v.name] = v.value
    end
    seen.scopes[scope.name] = values
  end
  seen.filters = turn_off_all_exceptions(session)
  local notify = vim.notify
  vim.notify = function(text)
    seen.control = text
  end
  vim.cmd("GpuAgentTakeControl")
  wait_for("control", function()
    return seen.control
  end)
  vim.notify = notify
  seen.memory = ask(session, "readMemory", { memoryReference = seen.pc, count = 16 })
  say("paused")
  io.read()
  dap.continue()
  wait_for("running", function()
    return not session.stopped_thread_id
  end)
  say("running")
  io.read()
  seen.told = told()
  say("told")
  io.read()
  pause()
  vim.cmd("GpuAgentHandOver")
  wait_for("end", function()
    return dap.session() == nil
  end)
  wait_for("terminal", function()
    return vim.bo.buftype == "terminal"
  end)
  seen.absent = said_by(function()
    gpu.start_debugger({ "no-such-debugger", "-p", "1" })
  end)
  say("left")
  io.read()

  dap.run(dap.configurations.cpp[2])
  wait_for("core file", function()
    return dap.session() and dap.session().current_frame
  end)
  session = dap.session()
  -- Both choices are made in a list, and show the thread anew.
  local function choose(command, position)
    local before = #seen.stops
    vim.ui.select = function(rows, options, done)
      seen[command] = options.format_item(rows[position])
      done(rows[position])
    end
    vim.cmd(command)
    wait_for(command, function()
      return #seen.stops > before
    end)
  end
  seen.nothing = said_by(function()
    vim.cmd("GpuAgentHandOver")
  end)
  choose("GpuAgentGroups", 1)
  choose("GpuAgentWave", 2)
  choose("GpuAgentLane", 8)
  local wave
  for _, scope in ipairs(ask(session, "scopes", { frameId = session.current_frame.id }).scopes) do
    if scope.name == "Wave" then
      wave = ask(session, "variables", { variablesReference = scope.variablesReference }).variables
    end
  end
  for _, v in ipairs(wave) do
    seen.chosen = (seen.chosen or "") .. v.name .. "=" .. v.value .. "\n"
  end
  dap.disconnect()
  wait_for("end of the core file", function()
    return dap.session() == nil
  end)
  seen.started = vim.fn.readfile(started)
  say(vim.json.encode(seen))
end

local ok, problem = pcall(run)
if not ok then
  fail(problem)
end
vim.cmd("qa!")
