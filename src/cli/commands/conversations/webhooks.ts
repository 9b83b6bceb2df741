/** The `webhooks` commands list, create, test and delete webhooks. */
import { loadSealer } from '../../../agents/sealed-keys.ts'
import type { Config } from '../../../config/config.ts'
import { StartupError } from '../../../lib/errors.ts'
import { createLog } from '../../../telemetry/log.ts'
import { Metrics } from '../../../telemetry/metrics.ts'
import { Deliverer } from '../../../webhooks/deliverer.ts'
import { createWebhookDirectory } from '../../../webhooks/directory.ts'
import { OperatorWebhooks } from '../../../webhooks/operator-webhooks.ts'
import { renderTest, renderWebhook, WebhookCreation } from '../../../webhooks/schema.ts'
import { Sender } from '../../../webhooks/sender.ts'
import { createWebhook, deleteWebhook, listWebhooks, testWebhook } from '../../../webhooks/webhooks.ts'
import {
  chooseParentKey,
  commandActor,
  createDeps,
  withConversations,
  withDatabase,
} from '../../installation.ts'
import { print, printResult, renderTable, renderTime } from '../../output.ts'

interface KeyOptions {
  /** The parent key, or its id; not needed if there is only one. */
  readonly key?: string
  readonly json?: boolean
}

export function list({ key, json = false }: KeyOptions): Promise<void> {
  return withWebhooks(async ({ deps }) => {
    const rows = await listWebhooks(deps, await chooseParentKey(deps.db, key))
    const webhooks = rows.map(renderWebhook)
    if (json) return print(JSON.stringify(webhooks))
    const cells = webhooks.map(({ id, state, url, events, agent_id, created_at }) => [
      ...[id, state, url, events.join(','), agent_id ?? '-', renderTime(created_at)],
    ])
    print(renderTable(['ID', 'STATE', 'URL', 'EVENTS', 'AGENT', 'CREATED'], cells))
  })
}

interface CreateOptions extends KeyOptions {
  readonly events: string
  readonly agent?: string
  readonly includeText?: boolean
}

export function create(
  url: string,
  { key, events, agent, includeText = false, json = false }: CreateOptions,
): Promise<void> {
  return withWebhooks(async ({ deps, config }) => {
    const fields = { url, events: events.split(','), agent_id: agent ?? null, include_text: includeText }
    const { data, error } = WebhookCreation.safeParse(fields)
    if (data === undefined) {
      const [issue] = error?.issues ?? []
      throw new StartupError(`--${String(issue?.path[0] ?? 'events')}: ${issue?.message}`)
    }
    const tenantId = await chooseParentKey(deps.db, key)
    const sealed = { ...deps, config, sealer: await loadSealer(config, deps) }
    const { row, secret } = await createWebhook(sealed, commandActor(), tenantId, data)
    const text = `created ${row.id}; the secret is shown only once:\n${secret}`
    printResult(json, { ...renderWebhook(row), secret }, text)
  })
}

/** Sends a test event. Exits with code 1 if the receiver does not accept it. */
export function test(id: string, json = false): Promise<void> {
  return withWebhooks(async ({ deps, config, storage }) => {
    const { clock } = deps
    const sender = new Sender({ clock, sealer: await loadSealer(config, deps), allow: config.webhooks.allow })
    const directory = createWebhookDirectory({ ...deps, storage, config, onPrepared() {} })
    const { conversations: metrics } = new Metrics(() => false)
    const log = createLog(config)
    const operator = new OperatorWebhooks(config.webhooks.ofOperator)
    const deliverer = new Deliverer({ ...deps, storage, config, directory, sender, log, metrics, operator })
    const delivery = renderTest(await testWebhook({ ...deps, config, deliverer }, undefined, id))
    await deliverer.close()
    const { state, last_status: status, last_error: error } = delivery
    printResult(json, delivery, state === 'delivered' ? `delivered (status ${status})` : `failed: ${error}`)
    if (state !== 'delivered') process.exitCode = 1
  })
}

export function remove(id: string, { yes, json = false }: { yes?: boolean; json?: boolean }): Promise<void> {
  return withWebhooks(async ({ deps, storage }) => {
    if (yes !== true)
      throw new StartupError(`This deletes the webhook ${id} and its deliveries; add --yes to confirm.`)
    await deleteWebhook({ ...deps, storage }, commandActor(), undefined, id)
    printResult(json, { id, deleted: true }, `deleted ${id}`)
  })
}

interface Access {
  readonly deps: ReturnType<typeof createDeps>
  readonly config: Config
  readonly storage: Parameters<Parameters<typeof withConversations>[1]>[0]
}

function withWebhooks(run: (access: Access) => Promise<void>): Promise<void> {
  return withDatabase((db, config, clock) =>
    withConversations({ db, config }, (storage) => run({ deps: createDeps(db, clock), config, storage })),
  )
}
