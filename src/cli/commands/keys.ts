/** The `keys` commands create, list, change, rotate and revoke parent keys. */
import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/config.ts'
import type { Actor } from '../../identity/audit.ts'
import {
  listParentKeys,
  type ParentKeyRow,
  revokeParentKey,
  rotateParentKey,
  stateOf,
} from '../../identity/keys.ts'
import {
  createManagedKey,
  disableManagedKey,
  enableManagedKey,
  updateManagedKey,
} from '../../identity/managed-keys.ts'
import { mintKey } from '../../lib/api-key.ts'
import { unixSeconds } from '../../lib/clock.ts'
import { StartupError } from '../../lib/errors.ts'
import { commandActor, createDeps, toPublicId, withDatabase } from '../installation.ts'
import { print, printResult, renderTable, renderTime } from '../output.ts'

export function create(name: string, canManage: boolean, isJson: boolean): Promise<void> {
  return withKeys(async (deps, actor) => {
    const permission = { can_manage_keys: canManage ? 1 : 0 }
    const { key } = await createManagedKey(deps, actor, operator, { name }, permission)
    printResult(isJson, { id: key.publicId, name, key: key.text }, key.text)
  }, 'create')
}

export function generate(isJson: boolean): void {
  const key = mintKey('parent', randomBytes)
  printResult(isJson, { id: key.publicId, key: key.text }, key.text)
}

export function list(isJson: boolean): Promise<void> {
  return withKeys(async (deps) => {
    const rows = await listParentKeys(deps)
    if (isJson) return print(JSON.stringify(rows.map(renderRow)))
    const now = unixSeconds(deps.clock)
    const cells = rows.map((row) => [
      row.id,
      row.name,
      row.hint,
      renderTime(row.created_at),
      renderTime(row.last_used_at),
      renderState(row, now),
    ])
    print(renderTable(['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED', 'STATE'], cells))
  })
}

const operator = { kind: 'command' } as const

function renderRow(row: ParentKeyRow) {
  return { ...row, is_automatic: row.is_automatic === 1, can_manage_keys: row.can_manage_keys === 1 }
}

function renderState(row: ParentKeyRow, now: number): string {
  const state = stateOf(row, now)
  const since = { active: null, disabled: row.disabled_at, expired: row.expires_at, revoked: row.revoked_at }[
    state
  ]
  return since === null ? state : `${state} ${renderTime(since)}`
}

interface KeyUpdateOptions {
  readonly name?: string
  readonly manageKeys?: boolean
  readonly expires?: number | 'never'
  readonly requestsPerMinute?: number | 'none'
  readonly maxStreams?: number | 'none'
  readonly json?: boolean
}

export function update(id: string, { json = false, ...options }: KeyUpdateOptions): Promise<void> {
  const { name, manageKeys, expires, requestsPerMinute, maxStreams } = options
  if (Object.keys(options).length === 0)
    throw new StartupError('There is nothing to change; `parley keys update --help` lists the options.')
  return changeKey(id, 'updated', json, (deps, actor, publicId) =>
    updateManagedKey(deps, actor, operator, publicId, {
      name,
      can_manage_keys: manageKeys,
      expires_at: toSetting(expires),
      requests_per_minute: toSetting(requestsPerMinute),
      max_streams: toSetting(maxStreams),
    }),
  )
}

function toSetting(option: number | string | undefined): number | null | undefined {
  return typeof option === 'string' ? null : option
}

export function disable(id: string, isJson: boolean): Promise<void> {
  return changeKey(id, 'disabled', isJson, (deps, actor, publicId) =>
    disableManagedKey(deps, actor, operator, publicId),
  )
}

export function enable(id: string, isJson: boolean): Promise<void> {
  return changeKey(id, 'enabled', isJson, (deps, actor, publicId) =>
    enableManagedKey(deps, actor, operator, publicId),
  )
}

function changeKey(
  id: string,
  verb: string,
  isJson: boolean | undefined,
  change: (deps: KeyCommandDeps, actor: Actor, publicId: string) => Promise<ParentKeyRow>,
): Promise<void> {
  return withKeys(async (deps, actor) => {
    const row = await change(deps, actor, toPublicId(id))
    printResult(isJson === true, renderRow(row), `${verb} ${row.id}`)
  })
}

export function rotate(id: string, overlapSeconds: number, isJson: boolean): Promise<void> {
  return withKeys(async (deps, actor) => {
    const { key, previousValidUntil } = await rotateParentKey(deps, actor, toPublicId(id), overlapSeconds)
    const result = { id: key.publicId, key: key.text, previous_valid_until: previousValidUntil }
    printResult(isJson, result, key.text)
  })
}

export function revoke(id: string, withCreated: boolean, isJson: boolean): Promise<void> {
  return withKeys(async (deps, actor) => {
    const publicId = toPublicId(id)
    const [, ...created] = await revokeParentKey(deps, actor, publicId, { withCreated })
    const result = { id: publicId, revoked: true, ...(withCreated && { created_keys_revoked: created }) }
    printResult(isJson, result, [publicId, ...created].map((each) => `revoked ${each}`).join('\n'))
  })
}

type KeyCommandDeps = ReturnType<typeof createDeps> & { readonly config: Config }

/**
 * `create` also creates a missing database, because the first key may be needed before the first server
 * start.
 */
function withKeys(
  run: (deps: KeyCommandDeps, actor: Actor) => Promise<void>,
  ifMissing?: 'create',
): Promise<void> {
  return withDatabase(
    (db, config, clock) => run({ ...createDeps(db, clock), config }, commandActor()),
    ifMissing,
  )
}
