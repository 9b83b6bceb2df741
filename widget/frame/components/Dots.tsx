/** Shows that an answer or a conversation is loading. */

export function Dots({ label }: { label: string }) {
  return (
    <p className="dots" role="img" aria-label={label}>
      <span />
      <span />
      <span />
    </p>
  )
}
