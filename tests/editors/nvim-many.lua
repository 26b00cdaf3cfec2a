-- SPDX-License-Identifier: MIT
-- A session of nvim-dap on eight GPUs with more waves than anybody lists.
-- Environment: ADAPTER, PID, NVIM_DAP (its folder), EDITORS (ours).  Says "listed" and waits for a line.
local seen = {}

local function wait_for(what, condition)
  if not vim.wait(60000, condition, 10) then
    io.stderr:write("no " .. what .. "\n")
    vim.cmd("cq")
  end
end

local function run()
  vim.opt.runtimepath:prepend(os.getenv("NVIM_DAP"))
  vim.opt.runtimepath:append(os.getenv("EDITORS") .. "/nvim")
  vim.cmd("runtime plugin/dap.lua")
  local dap = require("dap")
  require("gpu-agent").setup({ command = os.getenv("ADAPTER") })
  vim.notify = function(text)
    io.stderr:write(text .. "\n")
  end
  local stops = 0
  dap.listeners.after.event_stopped["test"] = function()
    stops = stops + 1
  end
  dap.run({ name = "GPU process", type = "gpu-agent", request = "attach", pid = tonumber(os.getenv("PID")),
    stopOnAttach = true, maxStopMs = 60000 })
  wait_for("stop", function()
    return stops == 1 and dap.session() and dap.session().current_frame
  end)

  -- Chooses a row, and notes what was offered.
  local function choose(command, position)
    local before = stops
    vim.ui.select = function(rows, options, done)
      seen[command] = { prompt = options.prompt, rows = vim.tbl_map(options.format_item, rows) }
      done(rows[position])
    end
    vim.cmd(command)
    wait_for(command, function()
      return stops > before and dap.session().current_frame
    end)
  end
  choose("GpuAgentGroups", 8)
  choose("GpuAgentWave", 1000)
  io.stdout:write("listed\n")
  io.stdout:flush()
  io.read()
  dap.disconnect()
  wait_for("end", function()
    return dap.session() == nil
  end)
  io.stdout:write(vim.json.encode(seen) .. "\n")
end

local ok, problem = pcall(run)
if not ok then
  io.stderr:write(tostring(problem) .. "\n")
  vim.cmd("cq")
end
vim.cmd("qa!")
