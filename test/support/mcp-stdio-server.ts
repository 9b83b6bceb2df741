/**
 * Runs a stdio MCP server. With `--stay`, it ignores SIGTERM and starts a child process that does so too.
 * `--pids FILE` writes the process ids of the server and of its child to a file.
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
