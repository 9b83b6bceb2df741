/** The `budgets meters` commands list and clear the models whose answers budgets measure in bytes. */
import { clearMeter, readMeters, renderMeter } from '../../../budgets/meter-operations.ts'
import { ServiceError, StartupError } from '../../../lib/errors.ts'
import { splitId } from '../../../models/price-overrides.ts'
import { commandActor, createDeps, withDatabase } from '../../installation.ts'
import { print, printResult, renderTable, renderTime } from '../../output.ts'

export function list(isJson: boolean): Promise<void> {
  return withDatabase(async (db, _config, clock) => {
    const meters = await readMeters(db, clock)
    if (isJson) return print(JSON.stringify(meters.map(renderMeter)))
    const cells = meters.map(({ provider, model, reason, until }) => [
      ...[`${provider}/${model}`, reason, renderTime(until)],
    ])
    print(renderTable(['MODEL', 'EXCEEDED', 'UNTIL'], cells))
  })
}

export function clear(id: string, isJson: boolean): Promise<void> {
  return withDatabase(async (db, _config, clock) => {
    const model = splitId(id)
    await clearMeter(createDeps(db, clock), commandActor(), model).catch((error: unknown) => {
      if (!(error instanceof ServiceError) || error.reason !== 'not_found') throw error
      throw new StartupError(
        `${id} is not metered by bytes; \`parley budgets meters list\` shows all models that are.`,
      )
    })
    printResult(
      isJson,
      { ...model, deleted: true },
      `cleared ${id}; running servers trust its usage within seconds`,
    )
  })
}
