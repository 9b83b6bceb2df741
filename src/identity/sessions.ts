/** Signs in whoever holds a one-time link, where no proxy does, and knows them again by a cookie. Decision: 10. */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { SecretTable } from '../db/tables.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Actor, type AuditDeps, recordAudit, type Trace, userActor } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import type { Identity } from './proxy-sign-in.ts'

/**
 * Whoever may read the server's terminal. No proxy can name them: this is no e-mail address. They own the first parent key.
 */
export const localAdministrator: Identity & { readonly ownsFirstKey: true } = {
  email: 'administrator',
  name: 'Administrator',
  username: undefined,
  groups: [],
  ownsFirstKey: true,
}

/** Decision: 2 (15 minutes). */
const LINK_SECONDS = 900
const SESSION_SECONDS = 30 * 86_400
const SECRET_BYTES = 32

type SessionDeps = AuditDeps & Pick<Dependencies, 'clock'>

/** What signs somebody in once; `expiresAt` is Unix seconds. */
export interface SignInLink {
  readonly text: string
  readonly expiresAt: number
}

export async function createSignInLink(deps: SessionDeps, actor: Actor): Promise<SignInLink> {
  const { text, digest } = mintSecret(deps)
  const now = unixSeconds(deps.clock)
  const expiresAt = now + LINK_SECONDS
  await deps.db.transaction().execute(async (trx) => {
    await deleteExpiredSecrets(trx, now)
    await insertSecret(trx, 'sign_in_links', { digest, expires_at: expiresAt })
    await recordAudit({ ...deps, db: trx }, actor, { action: 'session.offer', ...aboutUser })
  })
  return { text, expiresAt }
}

/** Where a link leads. Its secret stands behind `#`, which browsers neither send nor pass on. */
export function renderSignInUrl(baseUrl: string, { text }: SignInLink): string {
  return `${baseUrl.replace(/\/$/, '')}/console/sign-in#${text}`
}

/**
 * Begins a session with a link, which is used up; answers the `Set-Cookie` of it.
 * @throws ServiceError `invalid_api_key` for a link that is unknown, used or too old.
 */
export async function signIn(
  deps: SessionDeps & Pick<Dependencies, 'config'>,
  linkText: string,
  trace: Trace,
): Promise<string> {
  const { text, digest } = mintSecret(deps)
  const now = unixSeconds(deps.clock)
  await deps.db.transaction().execute(async (trx) => {
    if (!(await takeLink(trx, digestOf(linkText), now)))
      throw new ServiceError('invalid_api_key', 'This sign-in link was used already, or is too old.')
    await insertSecret(trx, 'sessions', { digest, expires_at: now + SESSION_SECONDS })
    const actor = userActor(localAdministrator.email, trace)
    await recordAudit({ ...deps, db: trx }, actor, { action: 'session.begin', ...aboutUser })
  })
  return renderCookie(deps.config, text, SESSION_SECONDS)
}

/** Ends the session of a request; answers the `Set-Cookie` that takes its cookie away. */
export async function signOut(
  deps: Pick<Dependencies, 'config' | 'db'> & { readonly users: { invalidate(): void } },
  headers: IncomingHttpHeaders,
): Promise<string> {
  const text = findSessionText(headers, deps.config)
  if (text !== undefined) await deleteSession(deps.db, digestOf(text))
  deps.users.invalidate()
  return renderCookie(deps.config, '', 0)
}

/** What the request's session is remembered by; undefined when it names none, and where a proxy says who is calling. */
export function readSessionDigest(
  headers: IncomingHttpHeaders,
  config: Pick<Config, 'forwardedAuth' | 'server'>,
): string | undefined {
  if (config.forwardedAuth !== undefined) return undefined
  const text = findSessionText(headers, config)
  return text === undefined ? undefined : digestOf(text)
}

/** Whether the session still lives. */
export async function isSession(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  digest: string,
): Promise<boolean> {
  return hasSession(db, digest, unixSeconds(clock))
}

const aboutUser = {
  target: { kind: 'user', id: localAdministrator.email },
  tenantId: null,
} as const

function mintSecret({ random }: Pick<Dependencies, 'random'>): { text: string; digest: string } {
  const text = Buffer.from(random(SECRET_BYTES)).toString('base64url')
  return { text, digest: digestOf(text) }
}

function digestOf(text: string): string {
  return hash('sha256', text)
}

/** The prefix keeps a cookie that a sister site sets from being taken for ours; browsers grant it to encrypted pages only. */
function cookieNameOf({ server }: Pick<Config, 'server'>): string {
  return isEncrypted(server) ? '__Host-parley_session' : 'parley_session'
}

function isEncrypted({ publicUrl }: Config['server']): boolean {
  return publicUrl?.startsWith('https:') ?? false
}

function renderCookie(config: Pick<Config, 'server'>, text: string, maxAgeSeconds: number): string {
  const secure = isEncrypted(config.server) ? '; Secure' : ''
  return `${cookieNameOf(config)}=${text}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}${secure}`
}

/** Of two cookies of the name, none counts: one of them is not ours. */
function findSessionText(
  { cookie }: IncomingHttpHeaders,
  config: Pick<Config, 'server'>,
): string | undefined {
  if (cookie === undefined) return undefined
  const start = `${cookieNameOf(config)}=`
  const [text, another] = cookie
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start))
  return another === undefined ? text?.slice(start.length) : undefined
}

type SecretTableName = 'sign_in_links' | 'sessions'

export async function insertSecret(db: Database, table: SecretTableName, row: SecretTable): Promise<void> {
  await db.insertInto(table).values(row).execute()
}

/** Uses a link up; false when there is none, or its time was over by `now` (Unix seconds). */
export async function takeLink(db: Database, digest: string, now: number): Promise<boolean> {
  const row = await db
    .deleteFrom('sign_in_links')
    .where('digest', '=', digest)
    .where('expires_at', '>', now)
    .returning('digest')
    .executeTakeFirst()
  return row !== undefined
}

/** Whether there is such a session at `now` (Unix seconds). */
export async function hasSession(db: Database, digest: string, now: number): Promise<boolean> {
  const query = db
    .selectFrom('sessions')
    .select('digest')
    .where('digest', '=', digest)
    .where('expires_at', '>', now)
  return (await query.executeTakeFirst()) !== undefined
}

export async function deleteSession(db: Database, digest: string): Promise<void> {
  await db.deleteFrom('sessions').where('digest', '=', digest).execute()
}

/** Deletes what is over by `now` (Unix seconds). */
export async function deleteExpiredSecrets(db: Database, now: number): Promise<void> {
  for (const table of ['sign_in_links', 'sessions'] as const) {
    await db.deleteFrom(table).where('expires_at', '<=', now).execute()
  }
}
