-- SPDX-License-Identifier: MIT
-- GPU processes, as gpu-agentctl list tells them.
local M = {}

-- All GPU processes, those that may be debugged first; or nil, and what gpu-agentctl says.
function M.list(command)
  local started, run = pcall(function()
    return vim.system({ command, "list", "--json=short" }, { text = true }):wait()
  end)
  if not started then
    return nil, ("cannot run %s: %s"):format(command, run)
  end
  if run.code ~= 0 then
    return nil, vim.trim(run.stderr ~= "" and run.stderr or run.stdout)
  end
  local can, cannot = {}, {}
  for _, process in ipairs(vim.json.decode(run.stdout).processes) do
    table.insert(process.debuggable and can or cannot, process)
  end
  return vim.list_extend(can, cannot)
end

local function reason(process)
  return process.reason or "the agent does not say why"
end

-- A line about a process.
function M.describe(process)
  local text = ("%d %s (%s, %d queues)"):format(process.pid, process.comm, process.vendor, process.queues)
  return process.debuggable and text or text .. " - cannot be debugged: " .. reason(process)
end

-- Why a process cannot be debugged, and where one finds what to do about it.
function M.why_not(process, command)
  return ("process %d cannot be debugged: %s\n%s doctor %d says what to do."):format(process.pid, reason(process), command,
    process.pid)
end

return M
