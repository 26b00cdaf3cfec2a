#compdef gpu-agentctl
# SPDX-License-Identifier: MIT
# zsh completion for gpu-agentctl, which says itself what can be offered: VALUE<TAB>DESCRIPTION

local line value
local -a closed open given=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")

for line in "${(@f)$("${${(Q)words[1]}/#\~/$HOME}" __complete -- "${given[@]}" 2>/dev/null)}"; do
	value=${line%%$'\t'*}
	line=${value//:/\\:}:${line#*$'\t'}
	case $value in
	:none | '') ;;
	:file) compset -P '--*='; _files ;;
	*=) open+=("${line%:}") ;;
	*) closed+=("${line%:}") ;;
	esac
done
((!$#closed)) || _describe -t values value closed
((!$#open)) || _describe -t fields field open -S ''
