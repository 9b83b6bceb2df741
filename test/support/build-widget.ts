/** Runs once before all tests: the service serves the built widget, which is built again when its sources have changed. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { isWidgetBuilt } from '../../scripts/widget-sources.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What vitest calls. */
export function setup(): void {
  if (isWidgetBuilt(root)) return
  execFileSync(process.execPath, ['scripts/build-widget.ts'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
