/** Runs a stdio MCP server; `--stay` ignores SIGTERM, and `--pids FILE` writes its and its child's process ids. */
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
