/** Ends MCP servers' programs if the service is killed. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Writable } from 'node:stream'

/** Reads lines `+ GROUP` and `- GROUP` until the service exits, then kills the remaining process groups. */
const SCRIPT = `
groups=
while read -r sign group; do
  kept=
  for each in $groups; do [ "$each" = "$group" ] || kept="$kept $each"; done
  groups=$kept
  [ "$sign" = - ] || groups="$groups $group"
done
for each in $groups; do kill -s KILL -- "-$each"; done
`

export class Watchdog {
  private child: ChildProcessByStdio<Writable, null, null> | undefined

  watch(group: number): void {
    this.child ??= startWatching()
    this.send(`+ ${group}`)
  }

  release(group: number): void {
    this.send(`- ${group}`)
  }

  close(): void {
    this.child?.stdin.end()
  }

  private send(line: string): void {
    if (this.child?.stdin.writable) this.child.stdin.write(`${line}\n`)
  }
}

/** Starts in a separate session, so that signals from the terminal do not end it first. */
function startWatching(): ChildProcessByStdio<Writable, null, null> {
  const child = spawn('/bin/sh', ['-c', SCRIPT], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // Continues without the watchdog, because programs still end when the service stops normally.
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  child.unref()
  return child
}
