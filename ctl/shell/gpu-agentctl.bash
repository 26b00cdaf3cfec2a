# bash completion for gpu-agentctl, which says itself what can be offered     -*- shell-script -*-
# SPDX-License-Identifier: MIT

_gpu_agentctl() {
	local rest=${COMP_LINE:0:COMP_POINT} next words=() i value last
	# bash also splits at "=" and ":"; what no blank separates is one word.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		next=${rest#"${rest%%[![:space:]]*}"}
		last=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || last=$next
		if [ "$next" = "$rest" ] && ((i)); then words[-1]+=$last; else words+=("$last"); fi
		rest=${next#"$last"}
	done
	# bash puts what is offered behind its last "=" or ":".
	[ "$last" != = ] && [ "$last" != : ] || last=
	rest=${words[-1]%"$last"}
	# Quotes and backslashes were typed for the shell.
	words=("${words[@]//[\'\"\\]/}")
	COMPREPLY=()
	while IFS=$'\t' read -r value _; do
		case $value in
		:none) ;;
		:file) compopt -o default 2>/dev/null ;;
		*)
			[ "${value: -1}" != = ] || compopt -o nospace 2>/dev/null
			COMPREPLY+=("${value#"$rest"}")
			;;
		esac
	done < <("${words[0]/#\~/$HOME}" __complete -- "${words[@]:1}" 2>/dev/null)
}

complete -F _gpu_agentctl gpu-agentctl
