/** The `doctor` command checks what a server needs and prints how to fix problems. */
import type { Config } from '../../config/config.ts'
import { ConfigError, loadConfig, type ParsedConfig } from '../../config/parse.ts'
import { StartupError } from '../../lib/errors.ts'
import { checkBudgets } from '../doctor/budgets.ts'
import { checkConversations } from '../doctor/conversations.ts'
import { checkDatabase, checkDataDirectory, checkFreeSpace, checkLock } from '../doctor/data.ts'
import { type Diagnostic, fail, ok, warn } from '../doctor/diagnostic.ts'
import {
  checkBackends,
  checkConversion,
  checkHostModule,
  checkMcpServers,
  checkNode,
  checkPort,
} from '../doctor/environment.ts'
import { checkPrices } from '../doctor/prices.ts'
import { checkBucket, checkFolders, checkPostgres, checkRedisAndClock } from '../doctor/remote.ts'
import { print, renderTable } from '../output.ts'

/** Prints one line per check. Exits with code 1 if any check fails. */
export async function doctor(isJson = false): Promise<void> {
  const diagnostics = await listDiagnostics()
  const isOk = diagnostics.every(({ state }) => state !== 'fail')
  if (isJson) print(JSON.stringify({ ok: isOk, checks: diagnostics }))
  else print(renderDiagnostics(diagnostics))
  if (!isOk) process.exitCode = 1
  // Exits explicitly, because a host module may have started work that keeps the process running.
  process.stdout.write('', () => process.exit())
}

async function listDiagnostics(): Promise<Diagnostic[]> {
  const settings = await readConfiguration()
  if (Array.isArray(settings)) return [checkNode(process.versions.node), ...settings]
  const { config, warnings } = settings
  const configuration =
    warnings.length === 0
      ? [ok('configuration', 'all settings are valid')]
      : warnings.map((warning) => warn('configuration', warning))
  return [
    checkNode(process.versions.node),
    ...configuration,
    ...(await checkData(config)),
    ...(await checkBackends(config)),
    ...(await checkPrices(config)),
    ...(await checkHostModule(config)),
    ...(await checkMcpServers(config)),
    ...(await checkConversion(config)),
    ...(await checkRedisAndClock(config)),
    ...(await checkPort(config.server)),
  ]
}

/** Returns the configuration, or its problems; without a configuration, no other check can run. */
async function readConfiguration(): Promise<ParsedConfig | Diagnostic[]> {
  try {
    return await loadConfig()
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    const problems = error instanceof ConfigError ? error.problems : [error.message]
    return problems.map((problem) => fail('configuration', problem))
  }
}

async function checkData(config: Config): Promise<Diagnostic[]> {
  const { dataDir, databaseUrl, s3, secret } = config
  const rows = databaseUrl === undefined ? [] : await checkPostgres(config, databaseUrl)
  if (dataDir === ':memory:') {
    const isKept = databaseUrl !== undefined && s3 !== undefined && secret !== undefined
    const what = databaseUrl === undefined ? 'all data is' : 'all data outside the database is'
    const lost = warn('data directory', `PARLEY_DATA_DIR is :memory:, so ${what} lost when the server stops`)
    const others = [
      ...(await checkBudgets(config)),
      ...(await checkConversations(config)),
      ...(await checkBucket(config)),
    ]
    return [...(isKept ? [] : [lost]), ...rows, ...others]
  }
  const directory = await checkDataDirectory(config)
  if (directory.state === 'fail') return [directory, ...rows]
  return [
    directory,
    await checkFreeSpace(config),
    ...(databaseUrl === undefined ? [...(await checkDatabase(config)), await checkLock(dataDir)] : rows),
    ...(await checkBudgets(config)),
    ...(await checkConversations(config)),
    ...(await checkFolders(config)),
    ...(await checkBucket(config)),
  ]
}

function renderDiagnostics(diagnostics: readonly Diagnostic[]): string {
  const rows = diagnostics.map(({ state, check, message }) => [
    state.padEnd(4),
    check,
    message.replaceAll('\n', ' '),
  ])
  const [, ...lines] = renderTable(['', '', ''], rows).split('\n')
  return lines.join('\n')
}
