/** The page at `/demo`: a host page that shows what the widget can do. */
import './style.css'
