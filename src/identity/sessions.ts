/**
 * Signs in the local administrator with a one-time link and a session cookie, when no proxy handles sign-in
 * (ADR 0026).
 */
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config/config.ts'
import { unixSeconds } from '../lib/clock.ts'
import { ServiceError } from '../lib/errors.ts'
import { type Actor, type AuditDeps, recordAudit, type Trace, userActor } from './audit.ts'
import type { Dependencies } from './dependencies.ts'
import type { Identity } from './proxy-sign-in.ts'

/**
 * The user with access to the server's terminal. A proxy cannot send this identity, because `administrator`
 * is not an email address.
 */
export const localAdministrator: Identity & { readonly ownsFirstKey: true } = {
  email: 'administrator',
  name: 'Administrator',
  username: undefined,
  groups: [],
  ownsFirstKey: true,
}

const LINK_SECONDS = 900
const SESSION_SECONDS = 30 * 86_400
const SECRET_BYTES = 32

type SessionDeps = AuditDeps & Pick<Dependencies, 'clock'>

export interface SignInLink {
  readonly text: string
  /** Unix seconds. */
  readonly expiresAt: number
}

export async function createSignInLink(deps: SessionDeps, actor: Actor): Promise<SignInLink> {
  const { text, digest } = mintSecret(deps)
  const now = unixSeconds(deps.clock)
  const expiresAt = now + LINK_SECONDS
  await deps.db.transaction().execute(async (trx) => {
    for (const table of ['sign_in_links', 'sessions'] as const)
      await trx.deleteFrom(table).where('expires_at', '<=', now).execute()
    await trx.insertInto('sign_in_links').values({ digest, expires_at: expiresAt }).execute()
    await recordAudit({ ...deps, db: trx }, actor, { action: 'session.offer', ...aboutUser })
  })
  return { text, expiresAt }
}

/** Puts the secret after `#`, because browsers do not send this part of a URL to servers. */
export function renderSignInUrl(baseUrl: string, { text }: SignInLink): string {
  return `${baseUrl.replace(/\/$/, '')}/console/sign-in#${text}`
}

/**
 * Starts a session, deletes the link, and returns the `Set-Cookie` value. @throws ServiceError
 * `invalid_api_key` for an unknown, used or expired link.
 */
export async function signIn(
  deps: SessionDeps & Pick<Dependencies, 'config'>,
  linkText: string,
  trace: Trace,
): Promise<string> {
  const { text, digest } = mintSecret(deps)
  const now = unixSeconds(deps.clock)
  // Checks the link before the transaction; otherwise even a wrong link would lock the database for writing.
  await assertLink(deps, linkText, now)
  await deps.db.transaction().execute(async (trx) => {
    const link = await trx
      .deleteFrom('sign_in_links')
      .where('digest', '=', digestOf(linkText))
      .where('expires_at', '>', now)
      .returning('digest')
      .executeTakeFirst()
    if (link === undefined) throw wrongLink()
    await trx
      .insertInto('sessions')
      .values({ digest, expires_at: now + SESSION_SECONDS })
      .execute()
    const actor = userActor(localAdministrator.email, trace)
    await recordAudit({ ...deps, db: trx }, actor, { action: 'session.begin', ...aboutUser })
  })
  return renderCookie(deps.config, text, SESSION_SECONDS)
}

async function assertLink({ db }: Pick<SessionDeps, 'db'>, linkText: string, now: number): Promise<void> {
  const link = await db
    .selectFrom('sign_in_links')
    .select('digest')
    .where('digest', '=', digestOf(linkText))
    .where('expires_at', '>', now)
    .executeTakeFirst()
  if (link === undefined) throw wrongLink()
}

function wrongLink(): ServiceError {
  return new ServiceError('invalid_api_key', 'This sign-in link has expired or was already used.')
}

/** Ends a request's session; returns the `Set-Cookie` value that deletes the cookie. */
export async function signOut(
  deps: Pick<Dependencies, 'config' | 'db'> & { readonly users: { invalidate(): void } },
  headers: IncomingHttpHeaders,
): Promise<string> {
  const text = findSessionText(headers, deps.config)
  if (text !== undefined) await deps.db.deleteFrom('sessions').where('digest', '=', digestOf(text)).execute()
  deps.users.invalidate()
  return renderCookie(deps.config, '', 0)
}

/** Returns the session cookie's digest; undefined if there is no cookie or a proxy handles sign-in. */
export function readSessionDigest(
  headers: IncomingHttpHeaders,
  config: Pick<Config, 'forwardedAuth' | 'server'>,
): string | undefined {
  if (config.forwardedAuth !== undefined) return undefined
  const text = findSessionText(headers, config)
  return text === undefined ? undefined : digestOf(text)
}

export async function isSession(
  { db, clock }: Pick<Dependencies, 'db' | 'clock'>,
  digest: string,
): Promise<boolean> {
  const query = db
    .selectFrom('sessions')
    .select('digest')
    .where('digest', '=', digest)
    .where('expires_at', '>', unixSeconds(clock))
  return (await query.executeTakeFirst()) !== undefined
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

/**
 * Adds `__Host-`, so that other subdomains cannot set the cookie; browsers accept this prefix only over
 * HTTPS.
 */
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

/**
 * Finds the session cookie; if there are two, ignores both, because another site must have set one of them.
 */
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
