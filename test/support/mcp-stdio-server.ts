/**
 * An MCP server over pipes, run by the service under test. `--stay` has it outlive its input and every polite signal, with a child of
 * its own that does the same; `--pids FILE` writes their process ids there.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { createModernServer } from './mcp-modern.ts'

const { values: settings } = parseArgs({
  options: { stay: { type: 'boolean', default: false }, pids: { type: 'string' } },
})
process.stderr.write('the program speaks\n')
const pids = [process.pid]
if (settings.stay) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 60_000)
  const child = spawn(process.execPath, [
    '-e',
    'process.on("SIGTERM", () => {}); setInterval(() => {}, 60_000)',
  ])
  if (child.pid !== undefined) pids.push(child.pid)
}
if (settings.pids !== undefined) writeFileSync(settings.pids, pids.join(' '))
serveStdio(createModernServer)
