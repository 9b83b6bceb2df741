/** Defines the request and response schemas of the console operations. */
import { z } from 'zod'
import { KeyName, KeyRotation } from '../identity/key-schema.ts'
import type { ParentKeyRow } from '../identity/keys.ts'
import type { UserRow } from '../identity/users.ts'
import { reference } from '../lib/schema-bounds.ts'

const seconds = z.int().meta({ description: 'Unix seconds.' })
const publicKey = z.string().meta({ description: 'Public part of a parent key, never its secret.' })

const ConsoleUserObject = z
  .strictObject({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    username: z.string().nullable(),
    groups: z.array(z.string()),
    created_at: seconds,
    last_seen_at: seconds,
  })
  .meta({ id: 'ConsoleUser', description: 'A console user, with the identity that the proxy last sent.' })

const ConsoleKey = z
  .strictObject({
    id: z.string().meta({ description: 'The 12 public characters of the key.' }),
    key_hint: z.string().meta({ description: 'Prefix and last four characters of the newest secret.' }),
    name: z.string(),
    is_automatic: z.boolean().meta({
      description:
        'True if the server created the key automatically. The server revokes it when the user claims another key.',
    }),
    is_active: z.boolean().meta({ description: "True for the user's active key." }),
    created_at: seconds,
    disabled_at: seconds.nullable(),
    expires_at: seconds.nullable(),
    last_used_at: seconds.nullable(),
  })
  .meta({ id: 'ConsoleKey' })

export const Me = z
  .strictObject({
    user: ConsoleUserObject.nullable().meta({ description: 'Null if the caller authenticated with a key.' }),
    is_administrator: z.boolean(),
    signed_in_by: z.enum(['key', 'proxy', 'link']).meta({
      description: 'Sign-in method. Only a session that started with a link can be signed out.',
    }),
    keys: z.array(ConsoleKey).meta({ description: "The user's keys that are not revoked, newest first." }),
    parent_key: publicKey,
    agents: z.int().meta({ description: 'Number of agents that the active key owns.' }),
    conversations: z.strictObject({
      is_allowed: z.boolean().meta({ description: 'False if the server stores no new conversations.' }),
      max_days: z.int().meta({ description: 'Maximum number of days for which conversations are stored.' }),
    }),
    webhooks: z.strictObject({
      is_allowed: z.boolean().meta({ description: 'False if the server delivers no webhooks.' }),
    }),
  })
  .meta({ id: 'Me' })
export type Me = z.output<typeof Me>

export const SignIn = z
  .strictObject({ link: z.string().max(200).meta({ description: 'The part of the link after `#`.' }) })
  .meta({ id: 'SignIn' })

export const SignedIn = z.strictObject({ signed_in: z.literal(true) }).meta({ id: 'SignedIn' })

export const SignedOut = z.strictObject({ signed_out: z.literal(true) }).meta({ id: 'SignedOut' })

const MAX_URL = 2_000

export const PageToCheck = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: 'must be a URL that starts with https:// or http://' })
    .max(MAX_URL),
  parent_origin: z
    .url({ protocol: /^https?$/, error: 'must be an origin such as https://console.example.com' })
    .max(MAX_URL)
    .meta({ description: 'The origin of the page that contains the frame.' }),
})

export const CheckedPage = z.strictObject({
  outcome: z.enum(['shown', 'refused', 'failed', 'unreachable', 'unchecked']).meta({
    description:
      '`refused` if the headers forbid framing, `failed` for an HTTP error, `unchecked` if the server must not request the page.',
  }),
  rule: z.string().nullable().meta({ description: 'The header that forbids framing.' }),
  status: z.int().nullable().meta({ description: 'HTTP status of the page; null if there was no response.' }),
})
export type CheckedPage = z.infer<typeof CheckedPage>

export const KeyChoice = z
  .strictObject({ parent_key_id: reference().meta({ description: "Id of one of the user's keys." }) })
  .meta({ id: 'KeyChoice' })

export const KeyCreation = z.strictObject({ name: KeyName }).meta({ id: 'KeyCreation' })

export const KeyCreated = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    key: z.string().meta({ description: 'The parent key. It is shown only once.' }),
    key_hint: z.string(),
  })
  .meta({ id: 'KeyCreated' })

export const OwnKeyRotation = KeyRotation.extend(KeyChoice.shape)

export const OwnKeyRevoked = z.strictObject({ id: z.string(), revoked: z.literal(true) })

export const KeyClaim = z
  .strictObject({
    parent_key: reference().meta({ description: 'The complete parent key, including its secret.' }),
  })
  .meta({ id: 'KeyClaim' })

const count = z.int().nonnegative()

const Moved = z
  .strictObject({ agents: count, files: count, artifacts: count, usage_days: count, usage_calls: count })
  .meta({
    description: 'Number of objects moved from the automatic key; 0 if the user already owned the key.',
  })
export type Moved = z.output<typeof Moved>

export const KeyClaimed = z
  .strictObject({ claimed: z.literal(true), parent_key: publicKey, moved: Moved })
  .meta({ id: 'KeyClaimed' })

export const ClaimPreview = KeyClaimed.omit({ claimed: true })
export type Claim = z.output<typeof ClaimPreview>

export function renderUser(row: UserRow): z.output<typeof ConsoleUserObject> {
  const { id, email, name, username, groups, created_at, last_seen_at } = row
  return { id, email, name, username, groups: JSON.parse(groups), created_at, last_seen_at }
}

export function renderKey(row: ParentKeyRow, activeKeyId: string): z.output<typeof ConsoleKey> {
  const { id, hint, name, is_automatic, created_at, disabled_at, expires_at, last_used_at } = row
  return {
    id,
    key_hint: hint,
    name,
    is_automatic: is_automatic === 1,
    is_active: id === activeKeyId,
    created_at,
    disabled_at,
    expires_at,
    last_used_at,
  }
}
