/** Stores what the visitor has not sent, by conversation, in the frame's storage, which the page cannot read. */
import { isRecord } from '../../values.ts'
import type { Attachment } from '../attachments/attachments.ts'
import type { Failure } from '../failure.ts'
import { createBrowserStorage, type StorageScope } from '../history/browser-storage.ts'
import { areAttachments } from '../history/stored-entries.ts'

/** A conversation's draft and messages expire this many milliseconds after their last change (30 days). */
const KEPT_MS = 30 * 24 * 60 * 60 * 1000
const MAX_CONVERSATIONS = 20
/** Maximum length of a message with its attachments as JSON, in UTF-16 code units. */
const MAX_MESSAGE_LENGTH = 256 * 1024

/** A message that the server has not confirmed. */
export interface UnsentMessage {
  /** The server accepts a message with the same `clientId` only once. */
  readonly clientId: string
  readonly text: string
  readonly files: readonly Attachment[]
  readonly atMs: number
  /** Why the message could not be sent; absent while the message waits to be sent. */
  readonly failure?: Failure
}

interface Unsent {
  readonly changedAtMs: number
  readonly draft?: string
  readonly messages?: readonly UnsentMessage[]
}

interface UnsentRecord {
  /** Identifies the user who wrote the texts; absent for an anonymous visitor. */
  readonly user?: string
  /** By conversation id; see `NEW`. */
  readonly conversations: ReadonlyMap<string, Unsent>
}

/** The id of a conversation before its first message, and of the one that only the browser stores. */
export const NEW = ''

const storage = createBrowserStorage('parley-unsent ')
const nothing: UnsentRecord = { conversations: new Map() }

export class UnsentStore {
  private readonly listeners = new Set<() => void>()
  private scope: StorageScope | undefined
  /** The storage key; undefined if the record exists only in memory. */
  private stored: string | undefined
  private record = nothing
  private user: string | undefined

  constructor() {
    // Browsers dispatch `storage` events only to other tabs.
    window.addEventListener('storage', ({ key }) => {
      if (this.stored === undefined || (key !== null && key !== this.stored)) return
      this.read()
      this.publish()
    })
  }

  /** Calls `listener` when the texts of another user apply, or another tab has changed them. */
  subscribe(listener: () => void): void {
    this.listeners.add(listener)
  }

  /**
   * Uses the texts of `scope`. Deletes those of the user before. If `isStored` is false, deletes the texts from the
   * browser and keeps them in memory. `user` identifies the page's user: null for an anonymous visitor, undefined
   * if it is not known.
   */
  follow(scope: StorageScope | undefined, isStored: boolean, user: string | null | undefined): void {
    const before = this.scope
    const name = scope && storage.nameOf(scope)
    const isOther = name !== (before && storage.nameOf(before))
    if (before === undefined) storage.removeAll((_name, text) => parse(text).conversations.size === 0)
    else if (isOther && before.server === scope?.server) storage.write(storage.nameOf(before), undefined)
    this.scope = scope
    this.stored = isStored ? name : undefined
    if (isOther) {
      this.record = nothing
      this.user = undefined
    }
    const wasUser = this.read().user ?? this.user
    if (name !== undefined && !isStored) storage.write(name, undefined)
    const isOtherUser = wasUser !== undefined && user !== undefined && wasUser !== user
    this.user = (user === undefined ? wasUser : user) ?? undefined
    this.write(isOtherUser ? nothing : this.record)
    if (isOther || isOtherUser) this.publish()
  }

  /** Deletes the texts of the current user. */
  clear(): void {
    this.write(nothing)
    this.publish()
  }

  /** Deletes the texts of all users of this agent. */
  forget(): void {
    this.clear()
    if (this.scope !== undefined) storage.removeServer(this.scope.server)
  }

  /** Deletes the texts of a conversation. */
  remove(conversation: string): void {
    this.change(conversation, () => ({}))
  }

  readDraft(conversation: string): string {
    return this.read().conversations.get(conversation)?.draft ?? ''
  }

  saveDraft(conversation: string, draft: string): void {
    this.change(conversation, (unsent) => ({ ...unsent, draft }))
  }

  listMessages(conversation: string): readonly UnsentMessage[] {
    return this.read().conversations.get(conversation)?.messages ?? []
  }

  putMessage(conversation: string, message: UnsentMessage): void {
    this.removeMessages((clientId, other) => clientId === message.clientId && other !== conversation)
    if (JSON.stringify(message).length > MAX_MESSAGE_LENGTH) return
    this.change(conversation, ({ messages = [], ...rest }) => {
      const at = messages.findIndex(({ clientId }) => clientId === message.clientId)
      return { ...rest, messages: messages.toSpliced(at === -1 ? messages.length : at, 1, message) }
    })
  }

  removeMessages(isRemoved: (clientId: string, conversation: string) => boolean): void {
    for (const [id, { messages = [] }] of this.read().conversations) {
      const left = messages.filter(({ clientId }) => !isRemoved(clientId, id))
      if (left.length < messages.length) this.change(id, (unsent) => ({ ...unsent, messages: left }))
    }
  }

  /** Reads the record again, because other tabs change it too. */
  private read(): UnsentRecord {
    if (this.stored !== undefined) this.record = parse(storage.read(this.stored))
    return this.record
  }

  private change(conversation: string, update: (unsent: Partial<Unsent>) => Partial<Unsent>): void {
    const { conversations } = this.read()
    const { draft = '', messages = [] } = update(conversations.get(conversation) ?? {})
    const others = [...conversations].filter(([id]) => id !== conversation).slice(1 - MAX_CONVERSATIONS)
    const unsent: Unsent = {
      changedAtMs: Date.now(),
      ...(draft !== '' && { draft }),
      ...(messages.length > 0 && { messages }),
    }
    const isEmpty = draft === '' && messages.length === 0
    this.write({ conversations: new Map(isEmpty ? others : [...others, [conversation, unsent]]) })
  }

  private write(record: UnsentRecord): void {
    this.record = record
    if (this.stored === undefined) return
    const { conversations } = record
    const text = JSON.stringify({ version: 1, user: this.user, conversations: [...conversations] })
    const isWritten = storage.write(this.stored, conversations.size === 0 ? undefined : text)
    // Storage is blocked or full.
    if (!isWritten) this.stored = undefined
  }

  private publish(): void {
    for (const listener of this.listeners) listener()
  }
}

/** Omits everything that is invalid or has expired. */
function parse(text: string): UnsentRecord {
  try {
    const record: unknown = JSON.parse(text)
    if (!isRecord(record) || record.version !== 1 || !Array.isArray(record.conversations)) return nothing
    const { user, conversations } = record
    return {
      ...(typeof user === 'string' && { user }),
      conversations: new Map(conversations.filter(isEntry)),
    }
  } catch {
    return nothing
  }
}

function isEntry(value: unknown): value is [string, Unsent] {
  if (!Array.isArray(value)) return false
  const [id, unsent]: unknown[] = value
  if (typeof id !== 'string' || !isRecord(unsent)) return false
  const { changedAtMs, draft = '', messages = [] } = unsent
  return (
    Number(changedAtMs) > Date.now() - KEPT_MS &&
    typeof draft === 'string' &&
    Array.isArray(messages) &&
    messages.every(isMessage)
  )
}

function isMessage(value: unknown): value is UnsentMessage {
  if (!isRecord(value)) return false
  const { clientId, text, files, atMs, failure } = value
  return (
    typeof clientId === 'string' &&
    typeof text === 'string' &&
    typeof atMs === 'number' &&
    Array.isArray(files) &&
    areAttachments(files) &&
    (failure === undefined || (isRecord(failure) && typeof failure.code === 'string'))
  )
}
