# Completion of autotune for bash: eval "$(autotune completion bash)", or a file in bash-completion's folder.
_autotune() {
    local line typed current kept candidate
    local -a words lines
    line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    current=${words[-1]}
    mapfile -t lines < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
    COMPREPLY=()
    if [[ ${lines[0]-} == :files ]]; then
        compopt -o default 2>/dev/null
        return
    fi
    # bash replaces what stands behind the last of its word breaks; rows=4,dtype= has two.
    kept=${current%"${current##*[=:]}"}
    for candidate in "${lines[@]}"; do
        typed=${candidate%%$'\t'*}
        [[ $typed == "$current"* ]] && COMPREPLY+=("${typed#"$kept"}")
    done
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _autotune autotune
