/** How the launcher and the window look; put in place as a constructed style sheet, which every content security policy allows. */

/** Below this width the window is the whole screen. */
export const PHONE = '(max-width: 639.98px)'

export const styles = `
:host {
  all: initial !important;
  display: block !important;
}
:host([data-inline]) { height: 100% !important }
.overlay, .inline { --margin: 20px; --button: 56px; --ring: #fff; --surface: #fff }
[data-theme='dark'] { --ring: #1f2937; --surface: #111827 }
@media (prefers-color-scheme: dark) { [data-theme='auto'] { --ring: #1f2937; --surface: #111827 } }
[hidden] { display: none !important }
.launcher {
  all: unset;
  box-sizing: border-box;
  position: fixed;
  z-index: 2147483001;
  bottom: calc(var(--margin) + env(safe-area-inset-bottom));
  right: calc(var(--margin) + env(safe-area-inset-right));
  width: var(--button);
  height: var(--button);
  border-radius: 50%;
  display: grid;
  place-items: center;
  cursor: pointer;
  color: var(--on-primary);
  background: var(--primary);
  box-shadow: 0 1px 3px rgb(0 0 0 / .3), 0 6px 20px rgb(0 0 0 / .22);
  transition: transform .15s ease;
  -webkit-tap-highlight-color: transparent;
}
.left .launcher { right: auto; left: calc(var(--margin) + env(safe-area-inset-left)) }
.launcher:hover { transform: scale(1.05) }
.launcher:active { transform: scale(.97) }
.launcher:focus-visible { outline: 3px solid var(--primary); outline-offset: 3px; box-shadow: 0 0 0 3px var(--ring) }
.launcher svg { width: 28px; height: 28px; grid-area: 1 / 1; transition: opacity .15s ease, transform .15s ease }
.launcher .cross { opacity: 0; transform: rotate(-45deg) }
.open .launcher .bubble { opacity: 0; transform: rotate(45deg) }
.open .launcher .cross { opacity: 1; transform: none }
.badge {
  position: absolute;
  top: -4px;
  right: -4px;
  min-width: 22px;
  height: 22px;
  box-sizing: border-box;
  padding: 0 6px;
  border-radius: 11px;
  border: 2px solid var(--ring);
  background: #b91c1c;
  color: #fff;
  font: 700 12px/18px system-ui, sans-serif;
  text-align: center;
}
.window {
  box-sizing: border-box;
  position: fixed;
  z-index: 2147483000;
  bottom: calc(var(--margin) + env(safe-area-inset-bottom) + var(--above));
  right: calc(var(--margin) + env(safe-area-inset-right));
  width: min(var(--width), 100vw - 2 * var(--margin));
  height: min(var(--height), 100vh - 2 * var(--margin) - var(--above));
  height: min(var(--height), 100dvh - 2 * var(--margin) - var(--above));
  border-radius: 16px;
  overflow: hidden;
  background: var(--surface);
  box-shadow: 0 0 0 1px rgb(0 0 0 / .08), 0 12px 48px rgb(0 0 0 / .28);
  visibility: hidden;
  opacity: 0;
  transform: translateY(12px);
  transition: opacity .16s ease, transform .16s ease, visibility 0s .16s;
}
.left .window { right: auto; left: calc(var(--margin) + env(safe-area-inset-left)) }
.open .window { visibility: visible; opacity: 1; transform: none; transition-delay: 0s }
iframe { display: block; width: 100%; height: 100%; border: 0; color-scheme: normal }
.inline { height: 100% }
.inline .window { position: static; width: 100%; height: 100%; min-height: var(--height); border-radius: 0; box-shadow: none }
.inline iframe { min-height: inherit }
.hint {
  position: fixed;
  z-index: 2147483001;
  bottom: var(--margin);
  right: var(--margin);
  box-sizing: border-box;
  width: min(420px, 100vw - 2 * var(--margin));
  padding: 14px 16px;
  border-radius: 10px;
  border: 1px solid #b45309;
  background: #fffbeb;
  color: #451a03;
  font: 14px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere;
}
@media ${PHONE} {
  .overlay .window {
    top: var(--viewport-top, 0px);
    left: 0;
    right: 0;
    bottom: auto;
    width: 100%;
    height: var(--viewport-height, 100dvh);
    padding: env(safe-area-inset-top) env(safe-area-inset-right) env(safe-area-inset-bottom) env(safe-area-inset-left);
    border-radius: 0;
    box-shadow: none;
    z-index: 2147483002;
  }
}
@media (prefers-reduced-motion: reduce) { .launcher, .launcher svg, .window { transition: none !important; transform: none !important } }
@media (forced-colors: active) { .launcher, .window { border: 2px solid ButtonText } }
@media print { :host { display: none !important } }
`
