# fish completion for gpu-agentctl, which says itself what can be offered: VALUE<TAB>DESCRIPTION
# SPDX-License-Identifier: MIT

function __gpu_agentctl_complete
	set -l words (commandline -opc) (commandline -ct)
	command -q $words[1]; or return
	for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
		switch $line
			case :none
			case :file
				set -l option (string match -r -- '^--[^=]*=' $words[-1])
				string replace -r -- '^' "$option" (__fish_complete_path (string replace -- "$option" '' $words[-1]))
			case '*'
				echo $line
		end
	end
end

complete -c gpu-agentctl -f -a '(__gpu_agentctl_complete)'
