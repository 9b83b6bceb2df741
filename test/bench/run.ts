/** Runs `npm run bench`, which compares Parley with a minimal proxy (docs/bench.md). */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BenchFailure } from './connection.ts'
import { killAll, startBare, startService, startUpstream, takeCores, watchOthers } from './processes.ts'
import { type FailedRow, type Row, renderTable } from './report.ts'
import { agentYaml } from './requests.ts'
import { groups, measureGroup } from './rows.ts'
import type { BenchSetup } from './setup.ts'
import type { StreamPlan } from './upstream.ts'

const usage = `npm run bench -- [options]

  --quick          run fewer and shorter rounds: under 4 minutes, less exact
  --only <groups>  run only these groups, separated by commas: ${Object.keys(groups).join(', ')}
  --self-check     compare bare with bare, without the service: every ratio must be about 1
  --json           print one JSON object instead of the table
`

/** The CPU share of other programs above which a warning is printed. */
const quietShare = 0.05

type Options = ReturnType<typeof readOptions>

function readOptions() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      'self-check': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const chosen = values.only?.split(',') ?? Object.keys(groups)
  const unknown = chosen.filter((name) => !(name in groups))
  return { ...values, chosen, isUnderstood: unknown.length === 0 && !values.help }
}

/** Starts the service once to create a parent key and an agent key. */
async function prepareKeys(upstreamPort: number, isPinned: boolean, dataDir: string) {
  const service = await startService(upstreamPort, isPinned, dataDir)
  try {
    const parentKey = await service.printedKey()
    const response = await fetch(`http://127.0.0.1:${service.port}/v1/agents`, {
      method: 'POST',
      headers: { authorization: `Bearer ${parentKey}`, 'content-type': 'application/yaml' },
      body: agentYaml,
    })
    const text = await response.text()
    if (response.status !== 201)
      throw new BenchFailure(`The agent was not created, status ${response.status}: ${text}`)
    return { parentKey, agentKey: (JSON.parse(text) as { agent_key: string }).agent_key }
  } finally {
    await service.stop()
  }
}

async function createStand(
  upstreamPort: number,
  options: Options,
  isPinned: boolean,
  folder: string,
): Promise<BenchSetup> {
  const isSelfCheck = options['self-check']
  const startBarePassThrough = () => startBare(upstreamPort, isPinned, folder)
  const startBareWithKey = async () => ({
    ...(await startBarePassThrough()),
    printedKey: async () => 'svc_bench',
  })
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const keys = isSelfCheck
    ? { parentKey: 'svc_bench', agentKey: 'agnt_key-bench' }
    : await prepareKeys(upstreamPort, isPinned, dataDir)
  return {
    ...keys,
    startBare: startBarePassThrough,
    startOurs: isSelfCheck ? startBarePassThrough : () => startService(upstreamPort, isPinned, dataDir),
    startOursEmpty: isSelfCheck
      ? startBareWithKey
      : (more) => startService(upstreamPort, isPinned, mkdtempSync(join(folder, 'empty-')), more),
    plan: async (plan: StreamPlan) => {
      await fetch(`http://127.0.0.1:${upstreamPort}/plan`, { method: 'POST', body: JSON.stringify(plan) })
    },
    effort: options.quick
      ? { warmUps: 5, rounds: 9, limitMs: 4_500 }
      : { warmUps: 10, rounds: 25, limitMs: 24_000 },
    fileBytes: (options.quick ? 256 : 1_024) * 1024 ** 2,
    interruptions: options.quick || isSelfCheck ? 0 : 20,
    folder,
    slowRounds: options.quick ? 1 : 2,
    starts: options.quick ? 1 : 5,
  }
}

async function measureAll(setup: BenchSetup, options: Options): Promise<(Row | FailedRow)[]> {
  const rows: (Row | FailedRow)[] = []
  for (const name of options.chosen) {
    const startedMs = performance.now()
    const measured = await measureGroup(name, setup)
    rows.push(...(typeof measured === 'string' ? [{ name, failure: measured }] : measured))
    process.stderr.write(`${name}: ${((performance.now() - startedMs) / 1e3).toFixed(1)} s\n`)
  }
  return rows
}

function print(
  rows: readonly (Row | FailedRow)[],
  options: Options,
  isPinned: boolean,
  others: number,
): void {
  const cpu = cpus()[0]?.model ?? 'unknown'
  if (options.json) {
    const run = {
      node: process.version,
      cpu,
      isPinned,
      othersShare: others,
      isSelfCheck: options['self-check'],
    }
    process.stdout.write(`${JSON.stringify({ ...run, rows }, null, 2)}\n`)
    return
  }
  const pinning = isPinned ? 'server on core 0, load and upstream on core 1' : 'NOT PINNED to cores'
  const warning = others > quietShare ? ': NOT QUIET, the ratios are unreliable' : ''
  process.stdout.write(
    `node ${process.version}, ${cpu}; ${pinning}\n` +
      `other work took ${Math.round(others * 100)} % of the machine${warning}\n\n${renderTable(rows)}`,
  )
}

async function main(): Promise<void> {
  const options = readOptions()
  if (!options.isUnderstood) {
    process.stdout.write(usage)
    process.exitCode = options.help ? 0 : 2
    return
  }
  const isPinned = takeCores()
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-'))
  process.once('exit', () => {
    killAll()
    rmSync(folder, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const othersShare = watchOthers()
  const upstream = await startUpstream()
  const rows = await measureAll(await createStand(upstream.port, options, isPinned, folder), options)
  await upstream.stop()
  print(rows, options, isPinned, othersShare())
  process.exitCode = rows.some((row) => 'failure' in row) ? 1 : 0
}

try {
  await main()
} catch (error) {
  if (!(error instanceof BenchFailure)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}
