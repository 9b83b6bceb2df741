/** Reads and writes texts by agent and user in the frame's storage, which the page cannot read. */

/** Identifies the owner of a stored text. */
export interface StorageScope {
  /** The agent or the endpoint; never a secret. */
  readonly server: string
  /** The page's id for the signed-in user. */
  readonly user: string | undefined
}

export interface BrowserStorage {
  readonly nameOf: (scope: StorageScope) => string
  readonly read: (name: string) => string
  /** Returns false if storage is blocked or full. */
  readonly write: (name: string, text: string | undefined) => boolean
  /** Removes the texts of all users of this server. */
  readonly removeServer: (server: string) => void
  /** Removes every text, of any server, for which `isRemoved` returns true. */
  readonly removeAll: (isRemoved: (name: string, text: string) => boolean) => void
}

/** Returns undefined if storage is blocked or full. */
function attempt<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(localStorage)
  } catch {
    return undefined
  }
}

/** `prefix` starts the names of all texts with the same purpose. */
export function createBrowserStorage(prefix: string): BrowserStorage {
  function nameOf({ server, user }: StorageScope): string {
    return prefix + server + (user === undefined ? '' : ` ${JSON.stringify(user)}`)
  }

  function removeAll(isRemoved: (name: string, text: string) => boolean): void {
    attempt((storage) => {
      for (const [name, text] of Object.entries(storage)) {
        if (name.startsWith(prefix) && isRemoved(name, String(text))) storage.removeItem(name)
      }
    })
  }

  return {
    nameOf,
    removeAll,
    read: (name) => attempt((storage) => storage.getItem(name)) ?? '',
    write: (name, text) =>
      attempt((storage) => {
        if (text === undefined) storage.removeItem(name)
        else storage.setItem(name, text)
        return true
      }) === true,
    removeServer(server) {
      const name = nameOf({ server, user: undefined })
      removeAll((one) => one === name || one.startsWith(`${name} "`))
    },
  }
}
