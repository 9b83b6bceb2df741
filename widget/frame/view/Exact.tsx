/** A text exactly as it is sent or received. */

/** Text as it is, from left to right, never as Markdown. */
export function Exact({ label, text, isTitled = true }: { label: string; text: string; isTitled?: boolean }) {
  return (
    <div className="exact">
      {isTitled && <h3>{label}</h3>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard */}
      <section className="exact-text" dir="ltr" tabIndex={0} aria-label={label}>
        {text}
      </section>
    </div>
  )
}
