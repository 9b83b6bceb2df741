/** Rebuilds the browser files before the tests if their sources have changed. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { listStaleBuilds } from '../../scripts/web-sources.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

export function setup(): void {
  for (const { script } of listStaleBuilds(root)) {
    execFileSync(process.execPath, [script], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  }
}
