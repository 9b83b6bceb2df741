/** Keeps the visitor's token and the conversation that was shown last. */
import { isRecord } from '../../values.ts'
import { createBrowserStorage, type StorageScope } from '../history/browser-storage.ts'

/** Contains no text of a conversation. */
export interface VisitorRecord {
  /** Proves to the server who the visitor is; absent before the first message. */
  readonly token?: string
  /** Identifies the user whose token it is; absent for an anonymous visitor. */
  readonly user?: string
  /**
   * Id of the conversation that was shown last; absent if the visitor has started a new one without sending a
   * message.
   */
  readonly conversation?: string
  /** The ids of conversations that continued after the visitor left them. */
  readonly unread?: readonly string[]
}

export interface VisitorRecordStore {
  /**
   * Uses the record of `scope`. If `isStored` is false, deletes it from the browser and keeps it in memory.
   */
  readonly follow: (scope: StorageScope, isStored: boolean) => void
  readonly read: () => VisitorRecord
  /** Undefined removes a field. */
  readonly change: (
    change: { readonly [Name in keyof VisitorRecord]: VisitorRecord[Name] | undefined },
  ) => void
  /** Deletes the records of all users of this agent. */
  readonly forget: () => void
}

const storage = createBrowserStorage('parley-visitor ')

/** Calls `onOtherTab` with the new record when another tab has changed it. */
export function createVisitorRecordStore(onOtherTab: (record: VisitorRecord) => void): VisitorRecordStore {
  let scope: StorageScope | undefined
  /** The storage key; undefined if the record exists only in memory. */
  let stored: string | undefined
  let current: VisitorRecord = {}

  function save(): void {
    if (stored === undefined) return
    storage.write(stored, Object.keys(current).length === 0 ? undefined : JSON.stringify(current))
  }

  // Browsers dispatch `storage` events only to other tabs.
  window.addEventListener('storage', ({ key, newValue }) => {
    if (stored === undefined || (key !== null && key !== stored)) return
    current = parseRecord(newValue ?? '')
    onOtherTab(current)
  })

  return {
    follow(next, isStored) {
      const name = storage.nameOf(next)
      const isOther = scope === undefined || storage.nameOf(scope) !== name
      scope = next
      if (isOther) current = isStored ? parseRecord(storage.read(name)) : {}
      stored = isStored ? name : undefined
      if (isStored) save()
      else storage.write(name, undefined)
    },
    read: () => current,
    change(change) {
      current = Object.fromEntries(
        Object.entries({ ...current, ...change }).filter(([, value]) => value !== undefined),
      )
      save()
    },
    forget() {
      current = {}
      if (scope !== undefined) storage.removeServer(scope.server)
    },
  }
}

function parseRecord(text: string): VisitorRecord {
  try {
    const { token, user, conversation, unread }: Record<string, unknown> = toRecord(JSON.parse(text))
    return {
      ...(typeof token === 'string' && { token }),
      ...(typeof user === 'string' && { user }),
      ...(typeof conversation === 'string' && { conversation }),
      ...(Array.isArray(unread) && { unread: unread.filter((id) => typeof id === 'string') }),
    }
  } catch {
    return {}
  }
}

function toRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}
