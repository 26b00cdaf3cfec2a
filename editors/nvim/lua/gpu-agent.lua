-- SPDX-License-Identifier: MIT
-- GPU processes in nvim-dap:
--
--   vim.opt.runtimepath:append("/usr/share/doc/gpu-agent/editors/nvim")
--   require("gpu-agent").setup()
--
-- dap.continue() then offers "GPU process", which asks for one of those that the agent knows.
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

-- options: command, filetypes
function M.setup(options)
  local dap = require("dap")
  for name, value in pairs(options or {}) do
    M[name] = value
  end
  dap.adapters["gpu-agent"] = { type = "executable", command = M.command, args = { "dap" } }
  for _, filetype in ipairs(M.filetypes) do
    dap.configurations[filetype] = dap.configurations[filetype] or {}
    table.insert(dap.configurations[filetype], { name = "GPU process", type = "gpu-agent", request = "attach", pid = M.pick })
  end
end

return M
