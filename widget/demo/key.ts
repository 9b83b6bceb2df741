/** The agent key of the demo: for as long as its tab, and not in its address. */

const name = 'parley-demo-key'

/** From `?key=`, which is taken out of the address, else what was remembered; empty for none. */
export function readKey(): string {
  const address = new URL(location.href)
  const given = address.searchParams.get('key')
  if (given === null) return recall()
  address.searchParams.delete('key')
  history.replaceState(null, '', address)
  return given
}

/** Storage may be forbidden; then the key is asked for again. */
export function rememberKey(key: string): void {
  try {
    sessionStorage.setItem(name, key)
  } catch {}
}

function recall(): string {
  try {
    return sessionStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}
