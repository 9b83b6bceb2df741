/** Opens a dialog as a modal dialog while its component is mounted. */
import { type RefObject, useLayoutEffect } from 'react'

/** Closing the dialog returns the focus to the element that had it before. */
export function useModal(dialog: RefObject<HTMLDialogElement | null>): void {
  useLayoutEffect(() => {
    const { current } = dialog
    current?.showModal()
    return () => current?.close()
  }, [dialog])
}
