/** Checks whether the agent allows images from an address. */

/** `hosts` are host names; `*.example.org` also matches all subdomains of `example.org`, but not itself. */
export function isFromHost(address: string, hosts: readonly string[]): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname, port, username, password } = new URL(address)
  if (protocol !== 'https:' || `${port}${username}${password}` !== '') return false
  return hosts.some((listed) => {
    const host = listed.toLowerCase()
    return host.startsWith('*.') ? hostname.endsWith(host.slice(1)) : hostname === host
  })
}
