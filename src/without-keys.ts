/** Takes the secrets of keys and tokens out of texts that are kept or shown. */

/**
 * Leaves of every key its prefix and the public id behind it, of every artifact token its prefix and the name of the secret it was
 * signed with; hints stay as they are. Security: 2.13.
 */
export function withoutKeys(text: string): string {
  return text
    .replace(/((?:svc_(?:scoped_)?|agnt_key-)\w{12})\w+/g, '$1…')
    .replace(/(atk_[\w-]{8})\.[\w.-]+/g, '$1…')
}
