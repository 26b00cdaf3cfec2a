-- SPDX-License-Identifier: MIT
-- GPU processes in nvim-dap:
--
--   vim.opt.runtimepath:append("/usr/share/doc/gpu-agent/editors/nvim")
--   require("gpu-agent").setup()
--
-- dap.continue() then offers "GPU process", which asks for one of those that the agent knows, and "GPU core file".
-- :GpuAgentLane and :GpuAgentWave choose what is shown of the threads that stand still.
local M = { command = "gpu-agentctl", filetypes = { "c", "cpp", "cuda", "python" } }

-- GPU processes that may be debugged, as gpu-agentctl list tells them.
function M.processes()
  local text = vim.fn.system({ M.command, "list", "--json=short" })
  if vim.v.shell_error ~= 0 then
    error(M.command .. " list: " .. text)
  end
  return vim.tbl_filter(function(process)
    return process.debuggable
  end, vim.json.decode(text).processes)
end

local function describe(process)
  return ("%d %s (%s, %d queues)"):format(process.pid, process.comm, process.vendor, process.queues)
end

-- Ask for a process; a value that nvim-dap waits for.
function M.pick()
  return coroutine.create(function(session)
    vim.ui.select(M.processes(), { prompt = "GPU process", format_item = describe }, function(process)
      coroutine.resume(session, process and process.pid or require("dap").ABORT)
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

-- Send a request of the session, and call a function with its answer.
local function ask(command, arguments, done)
  local session = require("dap").session()
  if not session then
    vim.notify("gpu-agent: there is no session", vim.log.levels.ERROR)
    return
  end
  arguments.threadId = session.stopped_thread_id
  session:request(command, arguments, function(err, body)
    if err then
      vim.notify("gpu-agent: " .. (err.message or vim.inspect(err)), vim.log.levels.ERROR)
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

-- options: command, filetypes
function M.setup(options)
  local dap = require("dap")
  for name, value in pairs(options or {}) do
    M[name] = value
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
  vim.api.nvim_create_user_command("GpuAgentLane", M.choose_lane, { desc = "Choose a lane of the wave that is shown" })
  vim.api.nvim_create_user_command("GpuAgentWave", M.choose_wave, { desc = "Choose a wave of the group that is shown" })
end

return M
